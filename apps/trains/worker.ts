import { ignoreErrors } from '../command-line.js'
import { systemClock } from './clock.js'
import { Log, logFile } from './log/log.js'
import { registry } from './messages/registry.js'
import { Outages } from './outages.js'
import { measurePeakMemory } from './peak-memory.js'
import type { FromWorker, ToWorker, WorkerSettings } from './protocol.js'
import { USES, openTracker, type Tracker } from './tracker.js'
import { workerFailure } from './worker/failure.js'
import { MessageProcessor } from './worker/message-processor.js'
import { MessageWorker } from './worker/message-worker.js'
import { slowedStore } from './worker/slowed-store.js'

/** The parts of this process once it can apply the messages of the supervisor. */
interface Running {
  readonly worker: MessageWorker
  readonly tracker: Tracker
}

/** Maximum number of unfinished messages with which a worker still slows down for viewers. */
const MAX_BEHIND = 100

const peakMemory = measurePeakMemory()
let running: Running | undefined

async function start(settings: WorkerSettings): Promise<void> {
  const sink = settings.log === undefined ? process.stderr : logFile(settings.log)
  const log = new Log(sink, settings.logLevel, { worker: settings.worker })
  const outages = new Outages(settings.engineWait, log, systemClock)
  const label = `trains worker ${settings.worker}`
  const tracker = await outages.retryDuringOutage(() =>
    openTracker(settings.engine, label, settings.use, outages),
  )
  const store = tracker.store(settings.run)
  const dwell = (): number => (worker.unfinished > MAX_BEHIND ? 0 : settings.dwell)
  const used = settings.dwell > 0 ? slowedStore(store, label, dwell, systemClock) : store
  const processor = new MessageProcessor(used, registry, settings.limits, log, systemClock)
  const worker = new MessageWorker(processor, send, fail, USES[settings.use].limits)
  running = { worker, tracker }
  send({ kind: 'ready', session: tracker.session })
}

async function drain({ worker, tracker }: Running): Promise<void> {
  await worker.drain()
  await tracker.close()
  send({ kind: 'drained', peakMemory: peakMemory() })
  process.disconnect()
}

function send(message: FromWorker): void {
  // Without a supervisor, this process is about to exit; see below.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined)
}

/** Reports to the supervisor why this worker can't continue, and exits. */
function fail(error: unknown): void {
  process.send?.(workerFailure(error), undefined, undefined, () => process.exit(1))
}

process.on('message', (message: ToWorker) => {
  switch (message.kind) {
    case 'start':
      start(message.settings).catch(fail)
      break
    case 'work':
      running?.worker.work(message.sequences, message.messages)
      break
    case 'hold':
      running?.worker.hold(message.holding)
      break
    case 'drain':
      if (running) drain(running).catch(fail)
      break
  }
})

ignoreErrors(process.stderr)

// A terminal sends SIGINT to the whole process group, and a service manager sends SIGTERM. Workers ignore both and
// leave the decision to the supervisor.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)

// Without a supervisor, nobody receives the results, and this process would disturb a run that resumes this one.
process.on('disconnect', () => process.exit())
