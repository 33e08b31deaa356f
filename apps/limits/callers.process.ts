import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import { LocalBell } from './bell.js'
import { callers } from './callers.js'
import type { Order, Times } from './order.js'
import { strategy } from './strategies/registry.js'

/** Callers have a low priority. The service represents another machine, so callers must not slow it down. */
const NICE = constants.priority.PRIORITY_BELOW_NORMAL

// The run is over: callers stop waiting for permits.
process.once('disconnect', () => process.exit())

/** Runs the callers of one strategy, as tasks of this thread or in one thread each. */
const [order] = (await once(process, 'message')) as [Order]
setPriority(NICE)
const { limit, mode } = order.setting
const shared = strategy(order.strategy).prepare(limit, mode, order.jitter)
if (mode === 'threads') {
  const threads = await Promise.all(order.workers.map(connectedThread))
  const times = await ready()
  for (const thread of threads) thread.postMessage(times)
} else {
  await callers(order, { keeps: order.workers.includes(0), bell: new LocalBell(), shared, ready })
}

async function ready(): Promise<Times> {
  process.send!('ready')
  const [times] = (await once(process, 'message')) as [Times]
  return times
}

async function connectedThread(worker: number): Promise<Worker> {
  const workerData = { order: { ...order, workers: [worker] }, shared }
  const thread = new Worker(new URL('./caller.thread.js', import.meta.url), { workerData })
  await once(thread, 'message')
  return thread
}
