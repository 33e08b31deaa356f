import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Call } from './call.js'
import { SERVICE_TIME } from './setting.js'
import { realClock } from './real-clock.js'

/**
 * The service, in its own process. It records the arrival of each call. A GET request to a path returns the calls that
 * arrived there.
 */
const calls = new Map<string, Call[]>()

const server = createServer((request, response) => {
  const arrived = realClock.now()
  const { pathname, searchParams } = new URL(request.url!, 'http://service')
  if (request.method === 'GET') {
    response.end(JSON.stringify(calls.get(pathname) ?? []))
    return
  }
  const [asked, sent] = [Number(searchParams.get('asked')), Number(searchParams.get('sent'))]
  let noted = calls.get(pathname)
  if (!noted) calls.set(pathname, (noted = []))
  // The calls of the warm-up do not count.
  if (asked > 0) noted.push({ asked, sent, arrived })
  setTimeout(() => response.end(), SERVICE_TIME)
})

server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit())
