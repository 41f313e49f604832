/* SPDX-License-Identifier: Apache-2.0 */
/* Which container this process is in, found in the text of files in /proc/self.
 *
 * The kernel has no interface for this question. The id is in the path of the cgroup
 * (/proc/self/cgroup), unless the container has a cgroup namespace, where the path is "/"; and in
 * the paths of the files that the runtime mounts into it (/proc/self/mountinfo). In a Kubernetes
 * pod those files belong to the pod's sandbox, another container, so there only the cgroup is used:
 * no id is better than a wrong one. */
#ifndef SP_TRACE_CONTAINER_H
#define SP_TRACE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

/* An id is 64 hex digits, or in AWS Fargate 32 hex digits, a hyphen and a number. */
enum { SP_CONTAINER_ID_MAX = 64 };

/* Copy the id in TEXT to ID; false when there is none. TEXT is all of /proc/self/cgroup, of cgroups
 * of version 1, 2 or both. Here and below it ends with a NUL. */
bool sp_container_of_cgroup(char id[SP_CONTAINER_ID_MAX + 1], const char *text);
/* Copy the id in TEXT, all of /proc/self/mountinfo, to ID; false when there is none, and in a
 * pod. */
bool sp_container_of_mountinfo(char id[SP_CONTAINER_ID_MAX + 1], const char *text);
/* Whether TEXT, all of /proc/self/mountinfo, is of a container in a Kubernetes pod. */
bool sp_container_is_pod(const char *text);

#endif
