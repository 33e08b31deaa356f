import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { SharedBell } from './bell.js'
import { callers } from './callers.js'
import type { Order, Times } from './order.js'
import { BELL } from './strategies/memory.js'

/** Runs one caller in its own thread. */
const { order, shared } = workerData as { order: Order; shared: unknown }

// Only strategies that count in shared memory ring a bell.
const memory = shared instanceof SharedArrayBuffer ? shared : new SharedArrayBuffer(4)
await callers(order, {
  keeps: order.workers.includes(0),
  bell: new SharedBell(new Int32Array(memory), BELL),
  shared,
  async ready() {
    parentPort!.postMessage('ready')
    const [times] = (await once(parentPort!, 'message')) as [Times]
    // Nothing else keeps a thread alive while it waits for a permit. The thread ends with its process.
    parentPort!.ref()
    return times
  },
})
