import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../src/clock.js'
import { ClosedError } from '../../src/index.js'
import { joinLimiter, type SharedLimiterHandle } from '../../src/limits/index.js'

/**
 * Takes permits of a limit that many threads share, one after the other, until it hears a message. Tells that it is
 * there, and at the end when it had each permit: times of the machine's monotonic clock, which all threads read alike.
 */
const limiter = joinLimiter(workerData as SharedLimiterHandle)
const times: number[] = []
parentPort!.once('message', () => void limiter.close())
parentPort!.postMessage('ready')
try {
  for (;;) {
    await limiter.acquire()
    times.push(systemClock.now())
  }
} catch (error) {
  if (!(error instanceof ClosedError)) throw error
}
parentPort!.postMessage(times)
