-- SPDX-License-Identifier: Apache-2.0
-- Requests for the truth test (ngx_http_truth_module.c), for wrk: each asks for a work of its own, some with a body, some for a file that threads
-- read, some through a proxy location, whose own work is another one's.
local bodies = { string.rep("x", 300), string.rep("x", 100000) }
local n = 0

function request()
    n = n + 1
    local work, other = math.random(0, 31), math.random(32, 63)
    local slices, us = math.random(2, 8), 60 + 20 * math.random(0, 3)
    local kind = n % 8
    if kind == 0 then
        return wrk.format("GET", string.format("/proxy/%d/%d/%d/%d", work, slices, us, other))
    elseif kind == 1 then
        return wrk.format("GET", string.format("/subrequest/%d/%d/%d", work, slices, us))
    elseif kind == 2 or kind == 3 then
        return wrk.format("POST", string.format("/slices/%d/%d/%d", work, slices, us), nil, bodies[kind - 1])
    elseif kind == 4 then
        return wrk.format("GET", string.format("/nothing/%d/%d/%d", other, 2, us))
    elseif kind == 5 then
        return wrk.format("GET", string.format("/file/%d/1/%d", work, us))
    end
    return wrk.format("GET", string.format("/slices/%d/%d/%d", work, slices, us))
end
