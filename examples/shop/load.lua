-- SPDX-License-Identifier: Apache-2.0
-- The requests of the shop's customers, for wrk: most look at products, a few ask for a report.
--     wrk -t 2 -c 16 -d 10 -s load.lua http://127.0.0.1:8080

local threads = 0

function setup(thread)
    thread:set("seed", threads)
    threads = threads + 1
end

function init()
    math.randomseed(seed + 1)
    wrk.headers["Accept-Encoding"] = "gzip"
end

-- The time between an answer and a customer's next request, in milliseconds. Without this time requests would mostly wait for each other.
function delay()
    return math.random(5, 40)
end

function request()
    local choice = math.random(100)
    if choice <= 60 then
        return wrk.format(nil, "/product?id=" .. math.random(4000))
    elseif choice <= 82 then
        return wrk.format(nil, "/cart?user=" .. math.random(500))
    elseif choice <= 97 then
        return wrk.format(nil, "/checkout?user=" .. math.random(500))
    end
    return wrk.format(nil, "/report?month=" .. math.random(12))
end
