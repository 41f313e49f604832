/* SPDX-License-Identifier: Apache-2.0 */
/* Container ids in what the kernel tells of a process under various runtimes; and no id where there
 * is none to be known. */
#include "unit/trace/support.h"

#include "trace/container.h"

#define A "4a5b8c1d9e0f2736455463728190abcdef0123456789abcdef0123456789abcd"
#define B "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfb0b1b2b3b4b5b6b7b8b9babbbcbdbebf"

typedef struct example {
    const char *what, *text, *id; /* NULL: none */
} example;

typedef bool (*finder)(char id[SP_CONTAINER_ID_MAX + 1], const char *text);

static void check(finder find, const example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char id[SP_CONTAINER_ID_MAX + 1] = "none";
        bool is_found = find(id, examples[i].text);
        if (is_found != (examples[i].id != NULL) ||
            strcmp(id, is_found ? examples[i].id : "none") != 0)
            fail_msg("%s: %s", examples[i].what, id);
    }
}

static void ids_are_in_the_paths_of_cgroups(void **state)
{
    (void)state;
    static const example examples[] = {
        {"docker, version 1",
         "12:pids:/docker/" A "\n11:memory:/docker/" A "\n1:name=systemd:/docker/" A "\n", A},
        {"docker, systemd, version 1", "1:name=systemd:/system.slice/docker-" A ".scope\n", A},
        {"docker, version 2, host's namespace", "0::/system.slice/docker-" A ".scope\n", A},
        {"docker, systemd inside", "0::/system.slice/docker-" A ".scope/init.scope\n", A},
        {"docker, rootless",
         "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A ".scope\n", A},
        {"docker in docker", "4:cpu:/docker/" A "/docker/" B "\n", B},
        {"pod, docker",
         "11:memory:/kubepods/burstable/pod6b2e4fd4-1d43-4f3e-9a8f-1a2b3c4d5e6f/" A "\n", A},
        {"pod, containerd, systemd",
         "0::/kubepods.slice/kubepods-burstable.slice/"
         "kubepods-burstable-pod6b2e4fd4_1d43_4f3e_9a8f_1a2b3c4d5e6f.slice/cri-containerd-" A
         ".scope\n",
         A},
        {"pod, containerd, systemd, version 1",
         "9:pids:/system.slice/containerd.service/"
         "kubepods-besteffort-pod6b2e4fd4_1d43_4f3e_9a8f_1a2b3c4d5e6f.slice:cri-containerd:" A "\n",
         A},
        {"pod, cri-o", "0::/kubepods.slice/kubepods-podabc.slice/crio-" A ".scope\n", A},
        {"pod, cri-o, crun",
         "0::/kubepods.slice/kubepods-podabc.slice/crio-" A ".scope/container\n", A},
        {"podman", "0::/machine.slice/libpod-" A ".scope/container\n", A},
        {"podman, rootless",
         "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope\n", A},
        {"ecs", "9:perf_event:/ecs/task-name/" A "\n", A},
        {"fargate",
         "1:name=systemd:/ecs/34dc0b5e626f2c5c4c5170e34b10e765/"
         "34dc0b5e626f2c5c4c5170e34b10e765-1234567890\n",
         "34dc0b5e626f2c5c4c5170e34b10e765-1234567890"},
        {"both versions, the second is the root",
         "2:cpu:/docker/" A "\n1:name=systemd:/docker/" A "\n0::/\n", A},
        {"no newline at the end", "0::/docker/" A, A},
        {"cgroup namespace", "0::/\n", NULL},
        {"cgroup namespace, from outside", "0::/../../.." A "\n", NULL},
        {"user session", "0::/user.slice/user-1000.slice/session-3.scope\n", NULL},
        {"system service", "0::/system.slice/ssh.service\n", NULL},
        {"conmon", "0::/machine.slice/libpod-conmon-" A ".scope\n", NULL},
        {"cri-o's conmon", "0::/kubepods.slice/crio-conmon-" A ".scope\n", NULL},
        {"nspawn", "0::/machine.slice/systemd-nspawn@deb.service/payload\n", NULL},
        {"lxc", "4:memory:/lxc.payload.web\n", NULL},
        {"63 digits",
         "0::/docker/4a5b8c1d9e0f2736455463728190abcdef0123456789abcdef0123456789abc\n", NULL},
        {"65 digits", "0::/docker/4" A "\n", NULL},
        {"upper case",
         "0::/docker/4A5b8c1d9e0f2736455463728190abcdef0123456789abcdef0123456789abcd\n", NULL},
        {"a number too long for fargate",
         "0::/34dc0b5e626f2c5c4c5170e34b10e765-12345678901234567890123456789012\n", NULL},
        {"no number for fargate", "0::/34dc0b5e626f2c5c4c5170e34b10e765-\n", NULL},
        {"letters for fargate", "0::/34dc0b5e626f2c5c4c5170e34b10e765-12ab\n", NULL},
        {"a controller that is none", A ":" A ":/\n", NULL},
        {"no path", A "\n:\n" A, NULL},
        {"nothing", "", NULL},
    };
    check(sp_container_of_cgroup, examples, SP_ARRAY_LENGTH(examples));
}

#define ROOT                                                                                       \
    "1271 1010 0:56 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/var/lib/docker/" B "\n"
#define END " rw,relatime - ext4 /dev/vda1 rw\n"

static void ids_are_in_the_paths_of_mounted_files(void **state)
{
    (void)state;
    static const example examples[] = {
        {"docker",
         ROOT "1290 1271 254:1 /var/lib/docker/containers/" A "/resolv.conf /etc/resolv.conf" END
              "1291 1271 254:1 /var/lib/docker/containers/" A "/hostname /etc/hostname" END
              "1292 1271 254:1 /var/lib/docker/containers/" A "/hosts /etc/hosts" END,
         A},
        {"docker, its folder is a volume",
         ROOT "1291 1271 254:1 /docker/containers/" A "/hostname /etc/hostname" END, A},
        {"podman",
         ROOT "9 8 0:25 /containers/storage/overlay-containers/" A
              "/userdata/hostname /etc/hostname" END,
         A},
        {"podman, rootless",
         ROOT "9 8 0:25 /u/.local/share/containers/storage/vfs-containers/" A
              "/userdata/hostname /etc/hostname" END,
         A},
        {"nerdctl",
         ROOT "9 8 8:1 /var/lib/nerdctl/1935db59/containers/default/" A
              "/hostname /etc/hostname" END,
         A},
        {"no newline at the end", "9 8 8:1 /containers/" A "/hostname /etc/hostname", A},
        {"pod, containerd: the sandbox's",
         ROOT "9 8 8:1 /var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/" A
              "/hostname /etc/hostname" END,
         NULL},
        {"pod, docker: the sandbox's",
         ROOT "9 8 8:1 /docker/containers/" A "/hostname /etc/hostname" END
              "9 8 8:1 /var/lib/kubelet/pods/6b2e4fd4-1d43/etc-hosts /etc/hosts" END,
         NULL},
        {"pod, cri-o: the sandbox's",
         ROOT "9 8 0:25 /containers/storage/overlay-containers/" A
              "/userdata/hostname /etc/hostname" END
              "9 8 0:40 / /run/secrets/kubernetes.io/serviceaccount ro - tmpfs tmpfs ro\n",
         NULL},
        {"pod, its own folder of the kubelet's",
         ROOT "9 8 8:1 /docker/containers/" A "/hostname /etc/hostname" END
              "9 8 8:1 /data/k8s/pods/6b2e4fd4-1d43/etc-hosts /etc/hosts" END,
         NULL},
        {"a host with containers",
         "30 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
         "99 30 0:56 / /var/lib/docker/overlay2/" A "/merged rw - overlay overlay rw\n",
         NULL},
        {"another file", ROOT "9 8 8:1 /docker/containers/" A "/hosts /etc/hosts" END, NULL},
        {"short lines", "\n1\n1 2 3\n1 2 3 /" A "\n1 2 3 /" A " \n", NULL},
        {"nothing", "", NULL},
    };
    check(sp_container_of_mountinfo, examples, SP_ARRAY_LENGTH(examples));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_in_the_paths_of_cgroups),
        cmocka_unit_test(ids_are_in_the_paths_of_mounted_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
