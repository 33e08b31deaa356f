import type { Clock } from 'signalbox/engine'
import type { EntryStore } from './entry-store.js'
import { decodeGrantSign, encodeGrantSign, grantSignKey, type GrantSign } from './grant-sign-text.js'
import type { KeyRequest } from './key-entry.js'
import type { OwnGrants } from './own-grants.js'

/** Minimum time between two look-ups of the sign of a session, in milliseconds. */
const INTERVAL = 1000
/** Maximum number of sessions whose signs are remembered. */
const MAX_KNOWN = 4096

/** A grant whose entry refers to a sign of its box. */
export type CoveredGrant = Pick<KeyRequest, 'id' | 'session'> & { readonly sign: number }

/** Returns those of these requests whose entry refers to a sign. */
export function coveredGrants(requests: readonly KeyRequest[]): CoveredGrant[] {
  return requests.flatMap(({ id, session, sign }) => (sign === undefined ? [] : [{ id, session, sign }]))
}

/** The sign of another session, as far as this box knows it. */
interface Known {
  /** Undefined if there was none. */
  readonly found: (GrantSign & { readonly text: string }) | undefined
  /** The clock times at which it was first found with this count, and with this number. */
  readonly countAt: number
  readonly signAt: number
  /** The clock time at which it was last looked up. */
  readonly lookedAt: number
  /** The greatest number to which an entry referred before it was last looked up. */
  readonly asked: number
}

/**
 * The signs by which boxes show that they still hold their grants. A grant lives for its lease after this box first
 * found the newest count of the sign to which its entry refers. As with an entry, the holder's own deadline is never
 * later than that. A box that takes such a grant ends the sign first, so that the box of the grant can't renew it
 * meanwhile.
 */
export class GrantSigns {
  readonly #store: Pick<EntryStore, 'get' | 'replace' | 'remove'>
  readonly #clock: Clock
  readonly #session: () => string
  readonly #own: Pick<OwnGrants, 'renewedAt' | 'has' | 'doubt'>
  readonly #diedBefore: (session: string) => number
  readonly #known = new Map<string, Known>()
  readonly #looking = new Map<string, Promise<void>>()

  /**
   * @param session returns the session of this box.
   * @param own the grants of this box.
   * @param diedBefore returns the clock time by which a session had died; -Infinity if it may live.
   */
  constructor(
    store: Pick<EntryStore, 'get' | 'replace' | 'remove'>,
    clock: Clock,
    session: () => string,
    own: Pick<OwnGrants, 'renewedAt' | 'has' | 'doubt'>,
    diedBefore: (session: string) => number,
  ) {
    this.#store = store
    this.#clock = clock
    this.#session = session
    this.#own = own
    this.#diedBefore = diedBefore
  }

  /**
   * Looks up the signs to which grants refer, unless that was done just now. Returns a promise if nothing is known of
   * one. Never rejects.
   */
  look(grants: Iterable<CoveredGrant>): Promise<unknown> | undefined {
    const unknown: Promise<void>[] = []
    for (const grant of grants) {
      if (grant.session === this.#session()) continue
      const known = this.#known.get(grant.session)
      const isUnknown = this.#isUnknown(grant)
      if (!isUnknown && (this.hasEnded(grant) || known!.lookedAt > this.#clock.now() - INTERVAL)) continue
      const looking = this.#lookUp(grant)
      if (isUnknown) unknown.push(looking)
    }
    return unknown.length > 0 ? Promise.all(unknown) : undefined
  }

  /**
   * Returns the clock time at which the sign last renewed a grant, as far as it is known; -Infinity if its box has died
   * since.
   */
  renewedAt(grant: CoveredGrant): number {
    const { session, sign } = grant
    if (session === this.#session()) return this.#own.renewedAt(sign)
    if (this.#isUnknown(grant)) return this.#clock.now()
    const { found, countAt, signAt } = this.#known.get(session)!
    const at = found?.sign === sign ? countAt : signAt
    return at <= this.#diedBefore(session) ? -Infinity : at
  }

  /** Whether the sign has stopped renewing a grant for good, so that others may take the grant. */
  hasEnded(grant: CoveredGrant): boolean {
    if (grant.session === this.#session()) return !this.#own.has(grant.id)
    if (this.#isUnknown(grant)) return false
    const { found } = this.#known.get(grant.session)!
    return found?.sign !== grant.sign || found.hasEnded
  }

  /**
   * Ends the sign of a grant if it is still the one that this box knows. Otherwise looks it up.
   * @throws errors of the client
   */
  async end(grant: CoveredGrant): Promise<void> {
    const { session } = grant
    if (session === this.#session()) {
      this.#own.doubt(grant.id)
      return
    }
    const known = this.#known.get(session)
    if (this.#isUnknown(grant) || !known?.found || this.hasEnded(grant)) return this.#read(grant)
    const ended = { ...known.found, hasEnded: true }
    const text = encodeGrantSign(ended)
    // mutant: sign-not-ended
    const isEnded = await this.#store.replace(grantSignKey(session), known.found.text, text)
    if (!isEnded) return this.#read(grant)
    // Its count is the same, so its age is still known.
    this.#known.set(session, { ...known, found: { ...ended, text } })
  }

  /** Deletes the signs of sessions that have left nothing. @throws errors of the client */
  async forget(sessions: readonly string[]): Promise<void> {
    await Promise.all(
      sessions.map(async session => {
        const key = grantSignKey(session)
        const text = await this.#store.get(key)
        if (text !== undefined) await this.#store.remove(key, text)
      }),
    )
  }

  /** Whether the sign is unknown: an entry may refer to a sign that was created after the last look-up. */
  #isUnknown({ session, sign }: CoveredGrant): boolean {
    const known = this.#known.get(session)
    return !known || sign > Math.max(known.asked, known.found?.sign ?? 0)
  }

  #lookUp(grant: CoveredGrant): Promise<void> {
    const before = this.#looking.get(grant.session)
    if (before) return before
    const over = (): void => void this.#looking.delete(grant.session)
    const looking = this.#read(grant).then(over, over)
    this.#looking.set(grant.session, looking)
    return looking
  }

  async #read({ session, sign }: CoveredGrant): Promise<void> {
    const text = await this.#store.get(grantSignKey(session))
    const decoded = text === undefined ? undefined : decodeGrantSign(text)
    const found = decoded && { ...decoded, text: text! }
    const known = this.#known.get(session)
    const now = this.#clock.now()
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    const isSameSign = known !== undefined && known.found?.sign === found?.sign
    const isSameCount = isSameSign && known.found?.count === found?.count
    this.#known.set(session, {
      found,
      countAt: isSameCount ? known.countAt : now,
      signAt: isSameSign ? known.signAt : now,
      lookedAt: now,
      asked: Math.max(sign, known?.asked ?? 0),
    })
  }
}
