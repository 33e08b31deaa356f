import { slotOf, tagOf } from './slot.js'

/** What one call can reach: everything of a hash slot on Cluster, everything elsewhere. */
export interface Group {
  /** The counter of numbers and versions; also what a call is routed by. */
  readonly numbers: string
  readonly queues: string
  readonly requests: string
  /** When the last sign of life of each session came. */
  readonly signs: string
  /** What the names of the channels begin with by which sessions are woken. */
  readonly channels: string
}

/** The layout's number stands in every name, so that another layout never takes these for its own. */
const LAYOUT = 'signalbox:1:'
/** What is in every name but those of held keys. */
export const OWN = `${LAYOUT}{`
const NOTHING: readonly string[] = []

/** The names of everything in Redis that belongs to a key prefix. */
export class Names {
  readonly #prefix: string
  readonly #cluster: boolean
  readonly #companions: (name: string) => readonly string[]
  readonly #groups = new Map<string, Group>()

  /**
   * @param prefix comes before every name.
   * @param cluster whether the hash tag of a name must show its slot.
   * @param companions the names of the keys that may be read when the held key of this name is freed.
   */
  constructor(
    prefix: string,
    cluster: boolean,
    companions: (name: string) => readonly string[] = () => NOTHING,
  ) {
    this.#prefix = prefix
    this.#cluster = cluster
    this.#companions = companions
  }

  /** The key that is there while the lock is held. */
  held(key: string): string {
    return this.#prefix + key
  }

  /** Whether the name of its held key is one of those that are kept for other things, of this prefix or another. */
  isTaken(key: string): boolean {
    return this.held(key).includes(OWN, Math.max(0, this.#prefix.length - OWN.length + 1))
  }

  /** The keys of others that may be read when the lock is freed. */
  companions(key: string): readonly string[] {
    return this.#companions(this.held(key))
  }

  /** The lock key of such a name, or undefined when it is not one of ours. */
  keyOfHeld(name: string): string | undefined {
    if (!name.startsWith(this.#prefix)) return undefined
    const key = name.slice(this.#prefix.length)
    return key.startsWith(LAYOUT) ? undefined : key
  }

  /** Where the queues and the counter of a lock or store key are. */
  group(key: string): Group {
    const tag = this.#tag(key)
    const known = this.#groups.get(tag)
    if (known) return known
    const group = groupAt(`${this.#prefix}${LAYOUT}{${tag}}:`)
    this.#groups.set(tag, group)
    return group
  }

  /** Where the value of a store key is, and the channel on which its changes are published. */
  value(key: string): string {
    return this.#inSlot('value', key)
  }

  /** Where the ids are that were recorded with a store key. */
  ids(key: string): string {
    return this.#inSlot('ids', key)
  }

  /** Where all is that is known of a limiter. */
  limit(name: string): string {
    return this.#inSlot('limit', name)
  }

  /** A pattern for SCAN that finds what is known of all limiters. */
  get limitsPattern(): string {
    return `${escaped(this.#prefix + LAYOUT)}*}:limit:*`
  }

  /** The limiter of a name found by {@link limitsPattern}; undefined for any other. */
  limiterOf(name: string): string | undefined {
    return this.#after('}:limit:', name)
  }

  /** The store key of a name made by {@link value}; undefined for any other. */
  keyOfValue(name: string): string | undefined {
    return this.#after('}:value:', name)
  }

  /** A pattern for SCAN that finds the values of all store keys that begin so. */
  valuePattern(start: string): string {
    return `${escaped(this.#prefix + LAYOUT)}{*}:value:${escaped(start)}*`
  }

  /** The store key of a name made by {@link ids}; undefined for any other. */
  keyOfIds(name: string): string | undefined {
    return this.#after('}:ids:', name)
  }

  /** A pattern for SCAN that finds the held keys of all lock keys that begin so. */
  heldPattern(start: string): string {
    return `${escaped(this.#prefix + start)}*`
  }

  /** A pattern for SCAN that finds the requests of all groups. */
  get requestsPattern(): string {
    return `${escaped(this.#prefix + LAYOUT)}*:requests`
  }

  /** The group that a name found by {@link requestsPattern} belongs to. */
  groupOfRequests(name: string): Group {
    return groupAt(name.slice(0, -'requests'.length))
  }

  #inSlot(word: string, key: string): string {
    return `${this.#prefix}${LAYOUT}{${this.#tag(key)}}:${word}:${key}`
  }

  /** What comes after the hash tag and this word. */
  #after(word: string, name: string): string | undefined {
    const tag = name.indexOf('}', this.#prefix.length)
    return name.startsWith(word, tag) ? name.slice(tag + word.length) : undefined
  }

  #tag(key: string): string {
    return this.#cluster ? tagOf(slotOf(this.held(key))) : ''
  }
}

function groupAt(start: string): Group {
  return {
    numbers: `${start}numbers`,
    queues: `${start}queues`,
    requests: `${start}requests`,
    signs: `${start}signs`,
    channels: `${start}session:`,
  }
}

function escaped(text: string): string {
  return text.replace(/[\\*?[\]]/g, '\\$&')
}
