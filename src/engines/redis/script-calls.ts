import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { IndeterminateError } from '../../errors.js'
import type { RequestStatus } from '../../engine/contract.js'
import type { Ballot } from './ballot.js'
import { CallArguments, type Caller, type ScriptOperation } from './call.js'
import type { CallErrors } from './call-errors.js'
import { RedisReplyError, type Reply } from './clients/connection.js'
import type { Answered, RedisLink } from './clients/redis-link.js'
import type { HeldLayout } from './held-layout.js'
import type { Group, Names } from './names.js'
import { OperationFailure, outcomeOf } from './outcomes.js'
import type { Replicas } from './replicas.js'
import { sentAgain } from './sent-again.js'
import { runtimeTimers } from '../../runtime-timers.js'

/**
 * Maximum number of operations in one call; the others of a tick follow in the next. So the server is kept from others
 * for a moment only, and works on one call while this process continues with what another has brought: with all in one,
 * each of the two would wait for the other.
 */
const MAX_OPERATIONS = 16

/** What calls are made of. */
export interface ScriptCallsParts {
  readonly link: RedisLink
  readonly names: Names
  readonly layout: HeldLayout
  readonly errors: CallErrors
  /** Nothing, where nothing is asked of replicas. */
  readonly replicas: Replicas | undefined
  readonly listener: CallListener
}

/** What a call reports besides its answers. */
export interface CallListener {
  /** An operation was executed. @returns the outcome for its caller. */
  settled(group: Group, operation: ScriptOperation, outcome: unknown): unknown
  /** There is a message for a request of this session. */
  hint(text: string): void
  /** An answer was lost, with all that it reported. */
  answerLost(): void
}

/** An operation on its way. */
interface Pending {
  readonly operation: ScriptOperation
  readonly ballot: Ballot | undefined
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: Error) => void
}

/** The operations for one group that have not been sent yet. */
interface Queue {
  readonly group: Group
  readonly pending: TickBatcher<Pending>
  /** How many calls are under way. */
  inFlight: number
}

/** Executes operations by the script, those of one tick and one group in one call. */
export class ScriptCalls {
  readonly #parts: ScriptCallsParts
  #caller: Caller | undefined
  readonly #queues = new Map<string, Queue>()
  /** Settles when the script is there again after a server had lost it; calls wait for that to keep their order. */
  #loading: Promise<void> | undefined

  constructor(parts: ScriptCallsParts) {
    this.#parts = parts
  }

  /** Begins to make calls for a session. */
  begin(caller: Caller): void {
    this.#caller = caller
  }

  /** Executes an operation, whose keys are all in the group. Rejects as the contract says. */
  send(group: Group, operation: ScriptOperation, ballot?: Ballot): Promise<unknown> {
    const { pending } = this.#queues.get(group.numbers) ?? this.#newQueue(group)
    return new Promise((resolve, reject) => pending.add({ operation, ballot, resolve, reject }))
  }

  #newQueue(group: Group): Queue {
    const queue: Queue = {
      group,
      pending: new TickBatcher<Pending>(
        () => void this.#call(queue, queue.pending.take(MAX_OPERATIONS)),
        send => this.#defer(queue, send),
      ),
      inFlight: 0,
    }
    this.#queues.set(group.numbers, queue)
    return queue
  }

  /**
   * Sends what has come together: at the end of this turn of tasks where nothing is under way, so that a lone caller
   * loses no time; else after all that this tick brings.
   */
  #defer({ inFlight }: Queue, send: () => void): void {
    if (this.#loading) void this.#loading.then(send)
    else if (inFlight === 0) runtimeTimers.queueMicrotask(send)
    else runtimeTimers.setImmediate(send)
  }

  async #call(queue: Queue, batch: readonly Pending[]): Promise<void> {
    const { errors, link, listener, names, replicas } = this.#parts
    const call = new CallArguments(names, queue.group, this.#caller!)
    for (const { operation, ballot } of batch) call.add(operation, ballot)
    queue.inFlight++
    try {
      const answered = await this.#sent(queue.group, call)
      const answers = answersIn(answered.reply)
      const lasting = batch.filter(({ operation }, index) => replicas && matters(operation, answers[index]!))
      const missed = lasting.length > 0 ? await replicas?.missed(answered) : undefined
      // What a call that is sent again finds gone, it may have done itself.
      const { twice } = answered
      if (twice) listener.answerLost()
      for (const [index, pending] of batch.entries()) {
        const { operation, resolve, reject } = pending
        const outcome = outcomeOf(operation, answers[index]!)
        if (outcome instanceof OperationFailure) reject(errors.refused(operation, outcome))
        else if (twice && isDoubtful(operation, outcome)) reject(errors.twice(operation))
        else {
          // The server has done it, also where replicas have missed it.
          const settled = listener.settled(queue.group, operation, outcome)
          if (missed && lasting.includes(pending)) reject(errors.unsafe(operation, missed))
          else resolve(settled)
        }
      }
      for (const hint of answers[batch.length] as readonly string[]) listener.hint(hint)
    } catch (error) {
      const failure = errors.ofCall(error)
      if (failure instanceof IndeterminateError) listener.answerLost()
      for (const { reject } of batch) reject(failure)
    } finally {
      queue.inFlight--
      if (queue.inFlight === 0 && queue.pending.size === 0 && link.cluster)
        this.#queues.delete(queue.group.numbers)
    }
  }

  /** Evaluates a call, again if its connection is lost. A client package may send it again by itself. */
  async #sent(group: Group, call: CallArguments): Promise<Answered & { readonly twice: boolean }> {
    return sentAgain(async isAgain => {
      const answered = await this.#evaluate(group, call)
      return { ...answered, twice: isAgain || answered.server.epoch !== answered.epoch }
    })
  }

  async #evaluate(group: Group, call: CallArguments): Promise<Answered> {
    const { layout, link } = this.#parts
    try {
      return await link.call(group.numbers, call.command('EVALSHA', layout.script.sha))
    } catch (error) {
      if (!(error instanceof RedisReplyError) || error.code !== 'NOSCRIPT') throw error
    }
    // Calls that were under way with this one come back the same way, in their order; later ones wait for them.
    const evaluated = link.call(group.numbers, call.command('EVAL', layout.script.text))
    const loaded = evaluated.then(
      () => undefined,
      () => undefined,
    )
    this.#loading = loaded
    void loaded.then(() => {
      if (this.#loading === loaded) this.#loading = undefined
    })
    return evaluated
  }
}

/** One item an operation, and last the hints. A number alone is the answer to the only one, without hints. */
export function answersIn(reply: Reply): readonly Reply[] {
  return typeof reply === 'number' ? [reply, []] : (reply as readonly Reply[])
}

/** Whether it must not be lost with the server: a lease that was set, or a commit. */
function matters({ type }: ScriptOperation, answer: Reply): boolean {
  if (typeof answer === 'number') return answer > 0 && SET_A_LEASE.has(type)
  if (type !== 'commit') return isHeld(answer)
  // What was committed before may have failed for want of replicas, and is then sent again.
  const [state] = answer as readonly Reply[]
  return state === 'committed' || state === 'repeated'
}

/** They are answered with a number other than 0 when they have. */
const SET_A_LEASE: ReadonlySet<string> = new Set<ScriptOperation['type']>([
  'enqueue',
  'checkIn',
  'renew',
  'downgrade',
])

function isHeld(answer: Reply): boolean {
  return Array.isArray(answer) && (answer[0] === 'held' || answer[0] === 'kept')
}

/** Whether the outcome is what a second execution of the same operation finds after the first. */
function isDoubtful({ type }: ScriptOperation, outcome: unknown): boolean {
  if (type === 'release' || type === 'renew' || type === 'downgrade' || type === 'take')
    return outcome === false
  if (type === 'extendOrYield') return (outcome as RequestStatus).state === 'gone'
  return type === 'commit' && (outcome as { state: string }).state !== 'committed'
}
