import { TickBatcher, type Clock, type Renew } from 'signalbox/engine'
import { AtMost } from './at-most.js'
import type { EntryStore } from './entry-store.js'
import { decodeGrantSign, encodeGrantSign, grantSignKey } from './grant-sign-text.js'

/**
 * The shortest lease that the sign renews, in milliseconds. Others look up the sign once a second, so it is too coarse
 * for a shorter one.
 */
const COVERED_FROM = 3000
/** Maximum number of entries in which grants are renewed at the same time. */
const RENEWED_AT_ONCE = 64
/** Maximum number of attempts to send a sign. An earlier attempt may have changed it. */
const MAX_TRIES = 3
/** Maximum time to send a sign, in milliseconds. */
const TIMEOUT = 5000

/** The result of the renewal of a grant in its entry. A `covered` grant refers to the sign. */
export type RenewedInEntry = 'lost' | 'renewed' | 'covered'

/** The parts of the engine that the grants of a box use. */
export interface OwnGrantsParts {
  readonly store: Pick<EntryStore, 'add' | 'get' | 'replace' | 'remove'>
  readonly clock: Clock
  readonly session: () => string
  /** Makes the entries of the session outlive its longest lease. */
  readonly keep: () => Promise<void>
  /** Does work, and repeats it while connections are lost. Doing it twice must be harmless. */
  readonly repeat: <T>(work: () => Promise<T>, until?: number) => Promise<T>
}

interface Covered {
  readonly number: number
  readonly lease: number
  readonly sign: number
}

/**
 * Renews the grants of this box. The first renewal of a grant changes its entry, which then refers to the sign of the
 * box. Each later one only sends that sign, one for all renewals of a tick, so a grant that is held for long costs its
 * entry nothing. Another box that takes such a grant ends the sign first. Then, and whenever this box can't be sure,
 * each grant is renewed in its entry again.
 */
export class OwnGrants {
  readonly #parts: OwnGrantsParts
  /** The grants whose entries refer to a sign, by the ID of their request. */
  readonly #covered = new Map<string, Covered>()
  readonly #inEntries = new AtMost(RENEWED_AT_ONCE)
  /** Renewals that wait for the next sign. */
  readonly #renewals = new TickBatcher<(sent: Promise<number | undefined>) => void>(() => this.#send())
  /** The number of the last sign. */
  #last = 0
  /** Number of times that any sign was sent, or may have been. So no text is sent twice. */
  #count = 0
  /** The sign to which grants may refer, as in its entry; undefined if there is none. */
  #current: { readonly sign: number; text: string; sentAt: number } | undefined
  #creating: Promise<number | undefined> | undefined
  /** The clock time at which this box last gave up a sign. */
  #endedAt = -Infinity

  constructor(parts: OwnGrantsParts) {
    this.#parts = parts
  }

  /** Returns the clock time at which this sign last renewed its grants, or at which this box gave it up. */
  renewedAt(sign: number): number {
    return this.#current?.sign === sign ? this.#current.sentAt : this.#endedAt
  }

  /**
   * Renews a grant. Returns false if it was lost. Throws errors of the client or of `inEntry`.
   * @param inEntry renews it in its entry, and makes the entry refer to the given sign, if any.
   */
  async renew(
    operation: Renew,
    inEntry: (sign: number | undefined) => Promise<RenewedInEntry>,
  ): Promise<boolean> {
    const { number, lease } = operation
    const { id } = operation.request
    const covered = this.#covered.get(id)
    if (covered?.number === number && covered.lease === lease) {
      const sent = await new Promise<number | undefined>(resolve => this.#renewals.add(resolve))
      // mutant: replaced-sign-believed
      if (sent === covered.sign) return true
    }
    const renewed = await this.#inEntries.run(async () => {
      const sign = lease < COVERED_FROM ? undefined : await this.#sign()
      const how = await inEntry(sign)
      if (how === 'covered') this.#covered.set(id, { number, lease, sign: sign! })
      else this.#covered.delete(id)
      return how
    })
    return renewed !== 'lost'
  }

  /** Whether the sign renews a grant. */
  has(id: string): boolean {
    return this.#covered.has(id)
  }

  /** Call when a grant may be lost. Its next renewal is in its entry again. */
  doubt(id: string): void {
    this.#covered.delete(id)
  }

  /** Call with an operation that changes or removes the entry of a request. Settles as the operation does. */
  async changes<T>(id: string, change: Promise<T>): Promise<T> {
    const isCovered = this.#covered.delete(id)
    try {
      return await change
    } catch (error) {
      // Otherwise the sign would renew a grant that this box no longer knows.
      // mutant: failed-change-keeps-sign
      if (isCovered) this.drop()
      throw error
    }
  }

  /** Gives up the sign. The next renewal of each grant is in its entry again, because the entry may have changed. */
  drop(): void {
    if (!this.#current) return
    this.#current = undefined
    this.#endedAt = this.#parts.clock.now()
  }

  /** Deletes the entry of the sign. Never throws. */
  async leave(): Promise<void> {
    const { store, session } = this.#parts
    const key = grantSignKey(session())
    if (this.#last === 0) return
    try {
      const text = await store.get(key)
      if (text !== undefined) await store.remove(key, text)
    } catch {
      // Another box deletes it when it cleans up.
    }
  }

  async #send(): Promise<void> {
    const renewals = this.#renewals.take()
    const { repeat, clock } = this.#parts
    const sent = repeat(() => this.#sent(), clock.now() + TIMEOUT)
    for (const resolve of renewals) resolve(sent)
    await Promise.allSettled([sent])
  }

  /** Sends the sign. Returns its number; undefined if it has ended. */
  async #sent(): Promise<number | undefined> {
    const { store, clock, session, keep } = this.#parts
    await keep()
    const key = grantSignKey(session())
    const current = this.#current
    if (!current) return undefined
    const { sign } = current
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const text = encodeGrantSign({ sign, count: ++this.#count, hasEnded: false })
      const sentAt = clock.now()
      // The client may repeat the call, whose second reply is then false.
      let found: string | undefined = text
      if (!(await store.replace(key, current.text, text))) found = await store.get(key)
      if (this.#current !== current) return undefined
      if (found === text) {
        current.text = text
        // mutant: sign-from-reply
        current.sentAt = sentAt
        return sign
      }
      const newest = found === undefined ? undefined : decodeGrantSign(found)
      if (newest?.sign !== sign || newest.hasEnded) break
      // An attempt was applied whose reply was lost. It is older than the renewals of this one.
      current.text = found!
    }
    if (this.#current === current) this.drop()
    return undefined
  }

  /** Returns the sign to which entries may refer; undefined if none can be written. */
  #sign(): Promise<number | undefined> {
    if (this.#current) return Promise.resolve(this.#current.sign)
    return (this.#creating ??= this.#create()
      .catch(() => undefined)
      .finally(() => (this.#creating = undefined)))
  }

  /**
   * Creates the entry of a sign. No other entry may refer to the sign before that, because a missing sign has ended.
   */
  async #create(): Promise<number | undefined> {
    const { store, clock, session, keep } = this.#parts
    await keep()
    const key = grantSignKey(session())
    const sign = ++this.#last
    const text = encodeGrantSign({ sign, count: ++this.#count, hasEnded: false })
    const sentAt = clock.now()
    const before = await store.add(key, text)
    const isAdded =
      before === undefined ||
      before === text ||
      (await store.replace(key, before, text)) ||
      (await store.get(key)) === text
    if (!isAdded) return undefined
    this.#current = { sign, text, sentAt }
    return sign
  }
}
