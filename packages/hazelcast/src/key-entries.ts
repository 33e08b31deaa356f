import type { KeyRequest } from './key-entry.js'
import { KeyChanges, type EntryParts, type Found, type Work } from './key-changes.js'
import { OpenEntry } from './open-entry.js'

/** Maximum number of keys whose entries are kept, unless more are in use. */
const MAX_KEYS = 4096
/** Maximum length of a text that is kept unless it has requests, in characters. */
const MAX_LENGTH = 4096

/** The entries of all keys that this box uses. */
export class KeyEntries {
  readonly #parts: EntryParts
  /** The most recently used one comes last. */
  readonly #keys = new Map<string, KeyChanges<OpenEntry>>()

  constructor(parts: EntryParts) {
    this.#parts = parts
  }

  /** Does work on the newest entry of a key, perhaps several times, and saves the changes of its last run. */
  async change<T>(key: string, work: Work<OpenEntry, T>): Promise<T> {
    const changes = this.#of(key)
    try {
      return await changes.change(work)
    } finally {
      const { text, entry } = changes.known ?? {}
      const isInUse = !changes.isIdle || (entry?.locks.requests.length ?? 0) > 0
      if (!isInUse && (text?.length ?? 0) > MAX_LENGTH) this.#keys.delete(key)
    }
  }

  /** The newest known entry of a key; undefined if it is not known. */
  known(key: string): Found | undefined {
    return this.#keys.get(key)?.known
  }

  /** The newest entry of a key that this box has read or written; undefined if it knows only of a newer one. */
  certain(key: string): Found | undefined {
    return this.#keys.get(key)?.certain
  }

  /**
   * The requests for a key alone that have neither been renewed nor checked in within their TTL, as far as it is known.
   */
  overdue(key: string): readonly KeyRequest[] {
    return this.#keys.get(key)?.overdue.filter(({ set }) => !set) ?? []
  }

  /** Call when another box has changed the entry of a key. @param text the new entry, if it is known. */
  changed(key: string, text: string | undefined): void {
    this.#keys.get(key)?.changed(text)
  }

  /** Forgets all known entries, because other boxes may have changed them. */
  forgetAll(): void {
    for (const changes of this.#keys.values()) changes.changed(undefined)
  }

  #of(key: string): KeyChanges<OpenEntry> {
    const known = this.#keys.get(key)
    if (known) {
      this.#keys.delete(key)
      this.#keys.set(key, known)
      return known
    }
    if (this.#keys.size >= MAX_KEYS)
      for (const [other, changes] of this.#keys) {
        if (changes.isIdle) this.#keys.delete(other)
        if (this.#keys.size < MAX_KEYS) break
      }
    const changes = new KeyChanges(key, OpenEntry, this.#parts)
    this.#keys.set(key, changes)
    return changes
  }
}
