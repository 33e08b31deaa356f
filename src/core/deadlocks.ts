import { AsyncLocalStorage } from 'node:async_hooks'
import { DeadlockError } from '../base/errors.js'
import { TransientMap } from '../base/transient-map.js'
import { conflicting, type ClaimSet } from './claims.js'
import { sharedClaims, type Claim } from '../engine/claim.js'
import type { Grant, LocalGrant } from './grant.js'
import type { WaitingQueue } from './pending-request.js'

/** The grant of one `run` while its task runs. The frame of a nested run has the frame of the outer run as parent. */
class Frame {
  /** The local queues in which this task, or a nested one, waits, with the number of its waits in each. */
  readonly waits = new Map<WaitingQueue, number>()

  constructor(
    readonly parent: Frame | undefined,
    readonly set: ClaimSet,
    readonly grant: LocalGrant,
  ) {}

  /** The claims that it holds now: a write grant may have been downgraded. */
  get claims(): readonly Claim[] {
    const { claims } = this.set
    return this.grant.lease.downgraded ? sharedClaims(claims) : claims
  }

  /** Whether it still holds its claims. A task may release its grant early, or lose it. */
  get holds(): boolean {
    return !this.grant.released && !this.grant.lease.loss
  }
}

/** One storage for all boxes: Node.js keeps each storage that was ever entered, and each slows down every promise. */
const storage = new AsyncLocalStorage<Frame | undefined>()

/** The frame of the calling task and those around it, innermost first. */
function currentFrames(): readonly Frame[] {
  const frames: Frame[] = []
  for (let frame = storage.getStore(); frame; frame = frame.parent) frames.push(frame)
  return frames
}

/**
 * Tracks which grants each task holds by `run`, to detect a task that would wait for itself: directly, or through a
 * cycle of tasks of this box. It follows exclusive and shared claims. It does not follow grants from `acquire`, because
 * any task may release them, nor permits that several tasks hold, because the release of any may end the wait.
 */
export class DeadlockDetector {
  readonly #active = new TransientMap<Frame, true>()

  async run<T>(set: ClaimSet, grant: LocalGrant, task: () => Promise<T>): Promise<T> {
    const frame = new Frame(storage.getStore(), set, grant)
    this.#active.set(frame, true)
    try {
      return await storage.run(frame, task)
    } finally {
      this.#active.delete(frame)
    }
  }

  /** Runs background work of the box outside the calling task, so that it holds none of its grants. */
  outside<T>(task: () => T): T {
    return storage.getStore() ? storage.run(undefined, task) : task()
  }

  /** Whether the calling task is the one that got this grant by `run`, even if the grant is lost by now. */
  isTaskOf(grant: Grant): boolean {
    return currentFrames().some(frame => frame.grant === grant)
  }

  inside(): boolean {
    return this.#held().length > 0
  }

  /** Returns the grant by which the calling task holds all of these claims, if there is one. */
  covering(set: ClaimSet): LocalGrant | undefined {
    for (const frame of this.#held()) if (covers(frame.claims, set)) return frame.grant
    return undefined
  }

  /**
   * Calls `wait`, which waits in `queue` on behalf of the calling task.
   * @param reentrant whether the call has that option.
   * @param queues all local queues of the box with waiters.
   * @throws DeadlockError when the task would wait for itself.
   */
  acquire(
    queue: WaitingQueue,
    reentrant: boolean,
    queues: () => Iterable<WaitingQueue>,
    wait: () => Promise<LocalGrant>,
  ): Promise<LocalGrant> {
    const own = this.#held()
    return own.length === 0 ? wait() : this.#acquireWithin(own, queue, reentrant, queues, wait)
  }

  async #acquireWithin(
    own: readonly Frame[],
    queue: WaitingQueue,
    reentrant: boolean,
    queues: () => Iterable<WaitingQueue>,
    wait: () => Promise<LocalGrant>,
  ): Promise<LocalGrant> {
    this.#check(queue, own, reentrant, queues)
    for (const frame of own) frame.waits.set(queue, (frame.waits.get(queue) ?? 0) + 1)
    try {
      return await wait()
    } finally {
      for (const frame of own) {
        const times = frame.waits.get(queue)! - 1
        if (times > 0) frame.waits.set(queue, times)
        // mutant: ended-wait-in-cycle
        else frame.waits.delete(queue)
      }
    }
  }

  #held(): readonly Frame[] {
    if (this.#active.size === 0) return NONE
    // A task may outlive the run that started it, and then holds nothing. Frames of other boxes don't count.
    return currentFrames().filter(frame => frame.holds && this.#active.has(frame))
  }

  #check(
    queue: WaitingQueue,
    own: readonly Frame[],
    reentrant: boolean,
    queues: () => Iterable<WaitingQueue>,
  ): void {
    const { title } = queue.set
    if (own.some(frame => conflicting(frame, queue.set))) {
      throw new DeadlockError(
        `waiting for ${title} would deadlock: this task already holds one of its keys; ${
          reentrant
            ? 'reentrant needs one run around it that holds all of them, exclusively if this call wants that'
            : 'see the option reentrant'
        }`,
        queue.errors.context,
      )
    }
    const seen = new Set<WaitingQueue>()
    const waitsFor = [{ set: queue.set, order: Infinity }]
    const add = (other: WaitingQueue): void => {
      if (seen.has(other)) return
      seen.add(other)
      waitsFor.push({ set: other.set, order: other.order })
    }
    for (const { set, order } of waitsFor) {
      if (own.some(frame => conflicting(frame, set))) {
        throw new DeadlockError(`waiting for ${title} would deadlock with another task`, queue.errors.context)
      }
      for (const frame of this.#active.keys()) {
        if (!own.includes(frame) && frame.holds && conflicting(frame, set))
          for (const other of frame.waits.keys()) add(other)
      }
      // A request never overtakes one that it conflicts with, so it also waits for such earlier requests.
      // mutant: waiters-not-in-cycle
      for (const other of queues()) if (other.order < order && conflicting(other.set, set)) add(other)
    }
  }
}

const NONE: readonly Frame[] = []

function covers(held: readonly Claim[], asked: ClaimSet): boolean {
  return asked.claims.every(claim =>
    held.some(
      other =>
        other.key === claim.key &&
        (other.mode === 'exclusive'
          ? claim.mode !== 'permits'
          : other.mode === 'shared' && claim.mode === 'shared'),
    ),
  )
}
