/**
 * A partner that records its calls. It is a process of its own, so that nothing delays it. Sends its port first, and
 * its records on request.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The recorded calls. */
export interface Calls {
  /** Times of the calls, in milliseconds. */
  readonly times: readonly number[]
  /** Keys of the calls. */
  readonly keys: readonly string[]
}

const times: number[] = []
const keys: string[] = []

const server = createServer((request, response) => {
  times.push(performance.now())
  keys.push(String(request.headers['idempotency-key']))
  response.end('charged')
})
server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port))
process.once('message', () => process.send!({ times, keys } satisfies Calls))
process.once('disconnect', () => process.exit())
