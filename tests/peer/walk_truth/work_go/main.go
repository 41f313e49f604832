// SPDX-License-Identifier: Apache-2.0

// Go that calls C that spins, calls back into Go, and sorts; and goroutines that stay in Go. For ever.
package main

/*
#include <stdlib.h>

extern unsigned goTimes(unsigned);

static int compare(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

static unsigned sort_numbers(unsigned seed)
{
    int numbers[500];
    for (int i = 0; i < 500; i++)
        numbers[i] = (int)((seed + (unsigned)i) * 2654435761u >> 8);
    qsort(numbers, 500, sizeof *numbers, compare);
    return (unsigned)numbers[250];
}

static unsigned recurse(unsigned depth)
{
    volatile unsigned sum = depth;
    for (unsigned i = 0; i < 200; i++)
        sum += i;
    return depth ? recurse(depth - 1) + sum : goTimes(sum);
}
*/
import "C"

import (
	"fmt"
	"sort"
	"strings"
)

//export goTimes
func goTimes(number C.uint) C.uint {
	words := strings.Fields(fmt.Sprintf("%d times %d is %d", number, number, number*number))
	sort.Strings(words)
	return C.uint(len(words)) + number
}

func inGo(seed int) {
	for {
		table := map[string]int{}
		for i := 0; i < 300; i++ {
			table[fmt.Sprint(i*seed)] += i
		}
		seed = len(table) + 1
	}
}

func inC(seed uint) {
	for {
		seed += uint(C.sort_numbers(C.uint(seed))) + uint(C.recurse(C.uint(seed%20)))
	}
}

func main() {
	go inGo(3)
	go inC(1)
	inC(7)
}
