import { systemClock } from '../../../apps/trains/clock.js'
import { Log } from '../../../apps/trains/log/log.js'
import { registry } from '../../../apps/trains/messages/registry.js'
import type { FromWorker, ToWorker } from '../../../apps/trains/protocol.js'
import type { StartWorker, WorkerProcess } from '../../../apps/trains/supervisor/worker-process.js'
import { MessageProcessor } from '../../../apps/trains/worker/message-processor.js'
import { workerFailure } from '../../../apps/trains/worker/failure.js'
import { MessageWorker } from '../../../apps/trains/worker/message-worker.js'
import { FakeStore, runStore, type SharedState } from './fake-store.js'

interface FakeProcess extends WorkerProcess {
  readonly session: string
  alive: boolean
}

const silent = new Log({ write: () => undefined }, 'error')

/**
 * Worker processes without real processes: the real worker over a fake store. Messages arrive some turns of the event
 * loop later, in order. A killed worker stops between two turns, as a process does.
 */
export class FakeWorkers {
  readonly processes: FakeProcess[] = []
  /** The sessions that were revoked. */
  readonly revoked: string[] = []
  /** Maximum number of messages that a process had received and not acknowledged at a time. */
  mostInFlight = 0
  /** Number of messages that were sent to a process after it was killed. */
  sentInVain = 0
  readonly #state: SharedState
  readonly #turns: () => number

  /** @param turns returns the number of turns of the event loop that the next event takes */
  constructor(state: SharedState, turns: () => number = () => 1) {
    this.#state = state
    this.#turns = turns
  }

  readonly start: StartWorker = events => {
    const store = new FakeStore(this.#state, this.#turns)
    const session = `session ${this.processes.length + 1}`
    let worker: MessageWorker | undefined
    let inFlight = 0
    const toSupervisor = new Pipe<FromWorker>(this.#turns, message => {
      if (message.kind === 'settled') inFlight -= message.sequences.length
      events.message(message)
    })
    const send = (message: FromWorker) => {
      if (it.alive) toSupervisor.send(message)
    }
    const end = (how: string) => {
      it.alive = false
      store.killed = true
      toSupervisor.end(() => events.gone(how))
    }
    const toWorker = new Pipe<ToWorker>(this.#turns, message => {
      if (!it.alive) return
      switch (message.kind) {
        case 'start': {
          const { run, limits: tries } = message.settings
          const processor = new MessageProcessor(runStore(store, run), registry, tries, silent, systemClock)
          const limits = { run: 2, atOnce: 8 }
          const fail = (error: unknown) => {
            send(workerFailure(error))
            end('failed')
          }
          worker = new MessageWorker(processor, send, fail, limits)
          send({ kind: 'ready', session })
          break
        }
        case 'work':
          worker?.work(message.sequences, message.messages)
          break
        case 'hold':
          worker?.hold(message.holding)
          break
        case 'drain':
          void worker?.drain().then(() => {
            send({ kind: 'drained', peakMemory: 1000 * (this.processes.indexOf(it) + 1) })
            end('exited with status 0')
          })
          break
      }
    })
    const it: FakeProcess = {
      pid: this.processes.length + 1,
      session,
      alive: true,
      send: message => {
        if (message.kind === 'work') {
          inFlight += message.messages.length
          if (!it.alive) this.sentInVain += message.messages.length
        }
        this.mostInFlight = Math.max(this.mostInFlight, inFlight)
        toWorker.send(message)
      },
      kill: () => {
        if (it.alive) end('killed by SIGKILL')
      },
    }
    this.processes.push(it)
    return it
  }

  readonly revoke = async (session: string): Promise<void> => {
    await new Promise(setImmediate)
    this.revoked.push(session)
  }
}

/** Delivers messages in order, each some turns after the one before it. */
class Pipe<Message> {
  readonly #turns: () => number
  readonly #receive: (message: Message) => void
  #last: Promise<void> = Promise.resolve()

  constructor(turns: () => number, receive: (message: Message) => void) {
    this.#turns = turns
    this.#receive = receive
  }

  send(message: Message): void {
    const text = JSON.stringify(message)
    this.#last = this.#last.then(async () => {
      for (let turn = this.#turns(); turn > 0; turn--) await new Promise(setImmediate)
      this.#receive(JSON.parse(text) as Message)
    })
  }

  end(then: () => void): void {
    void this.#last.then(then)
  }
}
