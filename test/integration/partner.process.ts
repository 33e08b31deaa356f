/** A partner that notes its calls, in a process of its own, which nothing delays: sends its port, then the notes. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The calls that it has noted. */
export interface Calls {
  /** When each call came, in milliseconds. */
  readonly times: readonly number[]
  /** The key that each call came with. */
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
