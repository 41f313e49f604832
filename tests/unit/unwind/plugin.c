/* SPDX-License-Identifier: Apache-2.0 */
/* A library that tests load by odd paths. */
int plugin_function(int number);

int plugin_function(int number)
{
    return number * 3 + 1;
}
