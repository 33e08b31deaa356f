import { createSocket } from 'node:dgram'
import { systemClock } from '../../src/clock.js'
import { open, type BoxLimiterOptions } from '../../src/index.js'

/** What a caller is given as the argument of its process. */
export interface CallerTask {
  readonly url: string
  readonly options: BoxLimiterOptions
  /** How many of its tasks call at the same time. */
  readonly tasks: number
  /** Until when they do: a time of the machine's monotonic clock. */
  readonly until: number
  /** Where the service listens that they call. */
  readonly port: number
  readonly name: number
}

/**
 * Calls a service under a limit that many processes share: a datagram for each permit, with the caller's name, the
 * number that the request for the permit had among all of this process, and when it was sent. The first one, with the
 * number -1, tells that it begins.
 */
const { url, options, tasks, until, port, name } = JSON.parse(process.argv[2]!) as CallerTask
const box = await open(url)
const limiter = box.limiter('service', options)
const socket = createSocket('udp4')
await new Promise<void>(resolve => socket.connect(port, '127.0.0.1', resolve))
let asked = 0
socket.send(`${name} -1 ${systemClock.now()}`)

async function call(): Promise<void> {
  while (systemClock.now() < until) {
    const request = asked++
    await limiter.acquire()
    socket.send(`${name} ${request} ${systemClock.now()}`)
  }
}

await Promise.all(Array.from({ length: tasks }, call))
socket.close()
await box.close()
