import { arrivalsRead, SILENCE } from '../../engine/kit/after-silence.js'
import { mayRepeat, showsOutcome } from '../../engine/kit/repetition.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { IndeterminateError, UnavailableError } from '../../base/errors.js'
import type { VoteTerms } from './redis-server.js'
import { CallArguments, type Caller, type ServerOperation } from './call.js'
import type { Reply } from './clients/connection.js'
import { ConnectionLostError } from './clients/failures.js'
import type { EngineParts } from './engine-parts.js'
import type { Group } from './names.js'
import { OperationFailure, outcomeOf } from './outcomes.js'
import type { OwnRequests } from './own-requests.js'
import type { Replicas } from './replicas.js'
import { runtimeTimers } from '../../base/runtime-timers.js'

/**
 * Maximum number of operations in one call; the others of a tick follow in the next call. So a call blocks the server
 * only briefly, and the server executes one call while this process handles the answer to another. With a single call,
 * each of the two would wait for the other.
 */
const MAX_OPERATIONS = 16

/** An operation without an outcome yet. */
interface Pending {
  readonly operation: ServerOperation
  readonly vote: VoteTerms | undefined
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: Error) => void
}

/** The operations for one group that have not been sent yet. */
interface Queue {
  readonly group: Group
  readonly pending: TickBatcher<Pending>
  /** Number of calls under way. */
  inFlight: number
}

/** Executes operations on the server. Those of one tick and one group are one call. */
export class TableCalls {
  readonly #parts: EngineParts
  readonly #replicas: Replicas | undefined
  readonly #requests: OwnRequests
  #caller: Caller | undefined
  readonly #queues = new Map<string, Queue>()
  /**
   * Calls wait for this promise, to keep their order. It settles when a call is answered that was repeated because a
   * server did not know the code, or when the process has read what arrived during a silence of the server.
   */
  #loading: Promise<void> | undefined
  /** When a reply last arrived, as clock time. */
  #heardAt = -Infinity

  /** @param replicas undefined if no replicas have to confirm writes. */
  constructor(parts: EngineParts, replicas: Replicas | undefined, requests: OwnRequests) {
    this.#parts = parts
    this.#replicas = replicas
    this.#requests = requests
  }

  /** Begins to make calls for a session. */
  begin(caller: Caller): void {
    this.#caller = caller
  }

  /** Executes an operation, whose keys are all in the group. Rejects as the contract says. */
  send(group: Group, operation: ServerOperation, vote?: VoteTerms): Promise<unknown> {
    const { pending } = this.#queues.get(group.numbers) ?? this.#newQueue(group)
    return new Promise((resolve, reject) => pending.add({ operation, vote, resolve, reject }))
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
   * Schedules the sending of collected operations. If no call is under way, they are sent in a microtask, so that a
   * single caller loses no time; otherwise after everything that this tick brings.
   */
  #defer({ inFlight }: Queue, send: () => void): void {
    if (this.#loading) void this.#loading.then(send)
    else if (inFlight === 0) runtimeTimers.queueMicrotask(send)
    else runtimeTimers.setImmediate(send)
  }

  /** @param lost the loss of the connection before the reply, if the operations are sent for the second time. */
  async #call(queue: Queue, batch: readonly Pending[], lost?: ConnectionLostError): Promise<void> {
    const { clock, code, errors, layout, link, names } = this.#parts
    const [replicas, requests] = [this.#replicas, this.#requests]
    const call = new CallArguments(names, queue.group, this.#caller!)
    for (const { operation, vote } of batch) call.add(operation, vote)
    queue.inFlight++
    try {
      // They can't be sent again, so first find out whether the connection has ended.
      if (clock.now() - this.#heardAt > SILENCE && batch.some(({ operation }) => !maySendAgain(operation)))
        await this.#holding(arrivalsRead())
      const route = queue.group.numbers
      // mutant: lost-code-overtaken
      const answered = await code.call(route, layout.code, call.all(), again => this.#holding(again))
      this.#heardAt = clock.now()
      const answers = answersIn(answered.reply)
      const lasting = batch.filter(({ operation }, index) => replicas && mustLast(operation, answers[index]!))
      const missed = lasting.length > 0 ? await replicas?.missed(answered) : undefined
      // mutant: repeated-reply-without-look
      if (lost) requests.answerLost()
      for (const [index, pending] of batch.entries()) {
        const { operation, resolve, reject } = pending
        const outcome = outcomeOf(operation, answers[index]!)
        if (outcome instanceof OperationFailure) reject(errors.refused(operation, outcome))
        // If a repeated call finds a request gone, its first execution may be the reason.
        else if (lost && isDoubtful(operation, outcome)) reject(errors.twice(operation))
        else {
          // The server has executed it, even if too few replicas have it.
          const settled = requests.settled(queue.group, operation, outcome)
          if (missed && lasting.includes(pending)) reject(errors.unsafe(operation, missed))
          else resolve(settled)
        }
      }
      for (const hint of answers[batch.length] as readonly string[]) requests.hint(hint)
    } catch (error) {
      this.#heardAt = -Infinity
      if (errors.ofCall(error) instanceof IndeterminateError)
        for (const { operation } of batch)
          if (operation.type === 'enqueue' || operation.type === 'extendOrYield')
            requests.operationLost(operation)
      if (error instanceof ConnectionLostError && !lost) {
        // The server may have closed the connection long ago, while this process was frozen.
        const again = batch.filter(({ operation }) => maySendAgain(operation))
        for (const { operation, reject } of batch) if (!maySendAgain(operation)) reject(errors.ofCall(error))
        if (again.length < batch.length) requests.answerLost()
        if (again.length > 0) await this.#call(queue, again, error)
        return
      }
      // The first call may have been executed.
      const failure = errors.ofCall(lost && error instanceof UnavailableError ? lost : error)
      // mutant: lost-reply-without-look
      if (failure instanceof IndeterminateError) requests.answerLost()
      for (const { reject } of batch) reject(failure)
    } finally {
      queue.inFlight--
      if (queue.inFlight === 0 && queue.pending.size === 0 && link.cluster)
        this.#queues.delete(queue.group.numbers)
    }
  }

  /** Makes later calls wait until a task has settled. They continue after the callers that await the task itself. */
  #holding<T>(task: Promise<T>): Promise<T> {
    const settled = task.then(
      () => undefined,
      () => undefined,
    )
    this.#loading = settled
    void settled.then(() => {
      if (this.#loading === settled) this.#loading = undefined
    })
    return task
  }
}

/**
 * Returns one item for each operation, and the hints last. A number alone is the answer to a single operation, without
 * hints.
 */
export function answersIn(reply: Reply): readonly Reply[] {
  return typeof reply === 'number' ? [reply, []] : (reply as readonly Reply[])
}

/** Whether the operation must not be lost with the server: it has set a lease, or committed. */
function mustLast({ type }: ServerOperation, answer: Reply): boolean {
  if (typeof answer === 'number') return answer > 0 && SET_A_LEASE.has(type)
  if (type !== 'commit') return Array.isArray(answer) && (answer[0] === 'held' || answer[0] === 'kept')
  // A commit that is repeated may have failed before because too few replicas had it.
  const [state] = answer as readonly Reply[]
  return state === 'committed' || state === 'repeated'
}

/** Operations whose answer is a number other than 0 if they have set a lease. */
const SET_A_LEASE: ReadonlySet<string> = new Set<ServerOperation['type']>([
  'enqueue',
  'checkIn',
  'renew',
  'downgrade',
])

/** Whether executing an operation twice has the same effect as once, or the reply shows that it was executed before. */
function maySendAgain(operation: ServerOperation): boolean {
  if (operation.type === 'take' || operation.type === 'raise') return true
  // A guarded commit releases its grant, so a second execution writes nothing.
  return mayRepeat(operation) || (operation.type === 'commit' && operation.guard !== undefined)
}

/** Whether the outcome may be that of a second execution, after a first one that succeeded. */
function isDoubtful(operation: ServerOperation, outcome: unknown): boolean {
  if (operation.type === 'take') return outcome === false
  // mutant: repeated-reply-believed
  return operation.type !== 'raise' && !showsOutcome(operation, outcome)
}
