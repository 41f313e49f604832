/* SPDX-License-Identifier: Apache-2.0 */
/* Which container this process is in, from what the kernel tells about it.
 *
 * There is no interface for that question. The id is in the path of the cgroup (/proc/self/cgroup),
 * unless the container has a cgroup namespace, where the path is "/"; and in the paths of the files
 * that the runtime mounts into it (/proc/self/mountinfo). In a Kubernetes pod those files belong to
 * the pod's sandbox, another container, so there only the cgroup is used: no id is better than a
 * wrong one. */
#ifndef SP_TRACE_CONTAINER_H
#define SP_TRACE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

/* 64 hex digits, and AWS Fargate's 32, a hyphen and a number. */
enum { SP_CONTAINER_ID_MAX = 64 };

/* The id in TEXT, all of /proc/self/cgroup, of version 1, 2 or both; false when there is none. TEXT
 * ends with a NUL, as below. */
bool sp_container_of_cgroup(char id[SP_CONTAINER_ID_MAX + 1], const char *text);
/* The id in TEXT, all of /proc/self/mountinfo; false when there is none, and in a pod. */
bool sp_container_of_mountinfo(char id[SP_CONTAINER_ID_MAX + 1], const char *text);
/* Whether TEXT, all of /proc/self/mountinfo, is of a container in a Kubernetes pod. */
bool sp_container_is_pod(const char *text);

#endif
