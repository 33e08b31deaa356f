import {
  channels,
  type GrantedEvent,
  type LockEvent,
  type LockRefusedEvent,
  type LostEvent,
  type ReleasedEvent,
  type ReleaseFailedEvent,
} from '../base/diagnostics.js'
import type { ClaimSet } from './claims.js'
import { tokenOf } from './grant.js'
import type { Lease, LeaseUser } from './lease.js'
import type { QueueSession } from './pending-request.js'

/** Publishes events about the requests and grants of one claim set. Each request, and each grant, ends exactly once. */
export class LockEvents {
  readonly #source: QueueSession
  readonly #set: ClaimSet

  constructor(source: QueueSession, set: ClaimSet) {
    this.#source = source
    this.#set = set
  }

  /** Publishes a request. Its grant or refusal refers to the returned event. */
  requested(): LockEvent {
    const event = this.#event({})
    channels.requested.publish(event)
    return event
  }

  /** Publishes that a request was refused. @param since when the caller made it: clock time. */
  refused(requested: LockEvent, since: number, error: unknown): void {
    const waited = this.#source.clock.now() - since
    channels.lockRefused.publish(
      this.#event({ waited, error, request: requested }) satisfies LockRefusedEvent,
    )
  }

  /**
   * Publishes the grant of a turn.
   * @param since when the caller requested it: clock time.
   * @returns when it was granted: clock time; undefined if nothing subscribes to grants or their ends.
   */
  granted(
    { number }: Lease,
    turn: number,
    since: number,
    requested: LockEvent | undefined,
  ): number | undefined {
    if (!grantsAreObserved()) return undefined
    const grantedAt = this.#source.clock.now()
    const token = tokenOf(number, turn)
    const waited = grantedAt - since
    channels.granted.publish(this.#event({ token, waited, request: requested }) satisfies GrantedEvent)
    return grantedAt
  }

  /** Publishes that a user of the lease has released it; by default its last user. */
  released(lease: Lease, user = lease.users[0]!): void {
    if (channels.released.hasSubscribers) channels.released.publish(this.#end(lease, user))
  }

  releaseFailed(lease: Lease, error: unknown): void {
    if (!channels.releaseFailed.hasSubscribers) return
    const end = this.#end(lease, lease.users[0]!)
    channels.releaseFailed.publish({ ...end, error } satisfies ReleaseFailedEvent)
  }

  /** Publishes the loss of the lease for each of its users. */
  lost(lease: Lease): void {
    if (!channels.lost.hasSubscribers) return
    for (const user of lease.users)
      channels.lost.publish({ ...this.#end(lease, user), error: lease.loss! } satisfies LostEvent)
  }

  #end({ number }: Lease, { turn, grantedAt }: LeaseUser): ReleasedEvent {
    // The time is unknown for a turn that was granted before there was a subscriber.
    const held = grantedAt === undefined ? 0 : this.#source.clock.now() - grantedAt
    return this.#event({ token: tokenOf(number, turn), held })
  }

  /** Adds the fields that every event has. Spreading the objects would take many times as long. */
  #event<More extends object>(more: More): LockEvent & More {
    const { engine, id } = this.#source
    const { claims } = this.#set
    return Object.assign(
      {
        engine: engine.name,
        session: id,
        keys: claims.map(({ key }) => key),
        modes: claims.map(({ mode }) => mode),
      },
      more,
    )
  }
}

function grantsAreObserved(): boolean {
  const { granted, released, releaseFailed, lost } = channels
  return (
    granted.hasSubscribers || released.hasSubscribers || releaseFailed.hasSubscribers || lost.hasSubscribers
  )
}
