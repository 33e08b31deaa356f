import { createSocket } from 'node:dgram'
import { systemClock } from '../../../src/base/clock.js'
import { ClosedError, open, type BoxLimiterOptions } from '../../../src/index.js'

/** The task of a caller: the argument of its process. */
export interface CallerTask {
  readonly url: string
  readonly options: BoxLimiterOptions
  /** Number of its tasks that call at the same time. */
  readonly tasks: number
  /** UDP port of the service. */
  readonly port: number
  readonly name: number
}

/**
 * Calls a service under a limit that many processes share, until it receives a message. For each permit it sends a
 * datagram with its name, the number of the request in this process, and the time of sending. The first datagram, with
 * the number -1, reports that it begins.
 */
const { url, options, tasks, port, name } = JSON.parse(process.argv[2]!) as CallerTask
const box = await open(url)
const limiter = box.limiter('service', options)
const socket = createSocket('udp4')
await new Promise<void>(resolve => socket.connect(port, '127.0.0.1', resolve))
let asked = 0
socket.send(`${name} -1 ${systemClock.now()}`)

async function call(): Promise<void> {
  for (;;) {
    const request = asked++
    await limiter.acquire()
    socket.send(`${name} ${request} ${systemClock.now()}`)
  }
}

// Its parent may be gone.
process.once('disconnect', () => process.exit())
process.once('message', () => void limiter.close())
const ends = await Promise.allSettled(Array.from({ length: tasks }, call))
const failed = ends.find(end => end.status === 'rejected' && !(end.reason instanceof ClosedError))
if (failed) throw (failed as PromiseRejectedResult).reason
socket.close()
await box.close()
process.disconnect()
