import { parentPort, workerData } from 'node:worker_threads'
import { sharedClock } from '../../../src/base/clock.js'
import { ClosedError } from '../../../src/index.js'
import { joinLimiter } from '../../../src/limits/index.js'
import { Random } from '../../../packages/conformance/src/random.js'
import type { SharerTask, SharerTimes } from './threads.js'

/**
 * Takes permits of a limit that many threads share, one after another, until it receives a message. Reports that it is
 * ready. At the end, reports the times at which it got the permits that it used, by the machine's monotonic clock and
 * by its wall clock, which all threads share.
 */
const { handle, stalls, refunds, seed } = workerData as SharerTask
/** The last reading of the clock. When a caller continues, this is the time at which its permit was given. */
let lastRead = 0
const { now } = sharedClock
sharedClock.now = () => (lastRead = now())
let lastWallRead = 0
const readWall = Date.now.bind(Date)
Date.now = () => (lastWallRead = readWall())
const limiter = joinLimiter(handle)
const random = new Random(seed)
const times: number[] = []
const wallTimes: number[] = []
parentPort!.once('message', () => void limiter.close())
if (stalls > 0) stallRepeatedly()
parentPort!.postMessage('ready')
try {
  for (;;) {
    const n = refunds ? 1 + random.below(3) : 1
    const permit = await limiter.acquire(n)
    const at = lastRead
    const wallAt = lastWallRead
    if (refunds && random.below(2) === 0) {
      if (random.below(2) === 0) await new Promise(resolve => setTimeout(resolve, random.below(60)))
      permit.refund()
    } else
      for (let call = 0; call < n; call++) {
        times.push(at)
        wallTimes.push(wallAt)
      }
  }
} catch (error) {
  if (!(error instanceof ClosedError)) throw error
}
const report: SharerTimes = { times, wallTimes }
parentPort!.postMessage(report)

/** Blocks the thread again and again. */
function stallRepeatedly(): void {
  const nowhere = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const timer = setInterval(() => Atomics.wait(nowhere, 0, 0, stalls), stalls + 200)
  parentPort!.once('message', () => clearInterval(timer))
}
