import type { Commit, CommitOutcome, Operation } from '../../src/engine/contract.js'
import type { History } from './history.js'

/** The result of one attempt of a caller to add its mark. */
type Told = 'applied' | 'repeated' | 'refused' | 'unknown'

/** One attempt at a change, as its caller knows it. */
export interface Try {
  /** The mark that it adds to the lists, different for each attempt. */
  readonly mark: string
  /** The same for all attempts at one change; undefined for a change without a repetition. */
  readonly change: string | undefined
  readonly keys: number
  told: Told
}

/**
 * Follows the store from outside. Every change adds its own mark to the lists under its keys, so a list shows the
 * applied changes. No change may be lost, applied twice or applied in part, and callers must get true results.
 */
export class ObservedStore {
  readonly #history: History
  readonly #lists = new Map<string, string>()
  readonly #versions = new Map<string, number>()
  /** Number of lists to which each mark was added. */
  readonly #marks = new Map<string, number>()
  readonly #tries: Try[] = []
  #version = 0

  constructor(history: History) {
    this.#history = history
  }

  /** Registers an attempt. Its caller sets the result in `told`. */
  tries(mark: string, change: string | undefined, keys: number): Try {
    const attempt: Try = { mark, change, keys, told: 'unknown' }
    this.#tries.push(attempt)
    return attempt
  }

  applied(operation: Operation, outcome: unknown): void {
    if (operation.type === 'commit' && (outcome as CommitOutcome).state === 'committed')
      this.#committed(operation, (outcome as CommitOutcome & { state: 'committed' }).versions)
  }

  #committed({ expect, writes }: Commit, versions: readonly number[]): void {
    for (const { key, version } of expect) {
      const found = this.#versions.get(key) ?? 0
      if (found !== version)
        this.#broken(`a commit expects version ${version} of ${key}, and it has ${found}`)
    }
    for (const [place, { key, value }] of writes.entries()) {
      const version = versions[place]!
      if (value !== undefined && version <= this.#version)
        this.#broken(`version ${version} of ${key} does not rise`)
      this.#version = Math.max(this.#version, version)
      this.#versions.set(key, version)
      this.#written(key, value)
    }
  }

  #written(key: string, value: string | undefined): void {
    const before = this.#lists.get(key) ?? '[]'
    if (value === undefined) this.#lists.delete(key)
    else this.#lists.set(key, value)
    if (value === undefined) return
    if (!value.startsWith(before.slice(0, -1)))
      this.#broken(`${key} was ${before} and lost something: ${value}`)
    const added = (JSON.parse(value) as string[]).slice((JSON.parse(before) as string[]).length)
    for (const mark of added) this.#marks.set(mark, (this.#marks.get(mark) ?? 0) + 1)
  }

  /** Checks that all results that callers got are true. */
  check(value: (key: string) => string | undefined): void {
    for (const [key, list] of this.#lists) {
      if (value(key) !== list) this.#broken(`${key} holds ${String(value(key))} instead of ${list}`)
    }
    const made = new Map<string, string>()
    for (const { mark, change, keys, told } of this.#tries) {
      const count = this.#marks.get(mark) ?? 0
      if (count !== 0 && count !== keys) this.#broken(`${mark} is in ${count} lists instead of ${keys}`)
      if (told === 'applied' && count === 0) this.#broken(`${mark} was told to be applied and is not there`)
      if (told !== 'applied' && told !== 'unknown' && count > 0)
        this.#broken(`${mark} was told to be ${told} and is there`)
      if (change === undefined || count === 0) continue
      const other = made.get(change)
      if (other !== undefined) this.#broken(`${change} was made twice, as ${other} and as ${mark}`)
      made.set(change, mark)
    }
    for (const { mark, change, told } of this.#tries) {
      if (told === 'repeated' && !made.has(change!))
        this.#broken(`${mark} was told to be repeated and never made`)
    }
  }

  #broken(message: string): void {
    this.#history.violate('P13', message)
  }
}
