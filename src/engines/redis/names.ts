import { slotOf, tagOf } from './slot.js'

/**
 * The names of the keys and channels that all requests of a hash slot share; without Cluster, all requests. Each call
 * is for one of these groups. A group of readers, in `table-records.lua`, is something else.
 */
export interface Group {
  /** The counter of numbers and versions; also the route of calls. */
  readonly numbers: string
  readonly queues: string
  readonly requests: string
  /** When the last sign of life of each session came. */
  readonly signs: string
  /** Prefix of the channels that notify sessions. */
  readonly channels: string
}

/**
 * Every name except a held key contains the version of the layout, so that another version never uses the same keys.
 */
const LAYOUT = 'signalbox:1:'
/** Part of every name except those of held keys. */
export const OWN = `${LAYOUT}{`
const NOTHING: readonly string[] = []

/** The names of all keys and channels in Redis under a prefix. */
export class Names {
  readonly #prefix: string
  readonly #cluster: boolean
  readonly #companions: (name: string) => readonly string[]
  readonly #groups = new Map<string, Group>()

  /**
   * @param prefix comes before every name.
   * @param cluster whether the hash tag of a name must determine its slot.
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

  /** The key that exists while the lock is held. */
  held(key: string): string {
    return this.#prefix + key
  }

  /** Whether the held key would have a name that is reserved for other data, of this prefix or another. */
  isTaken(key: string): boolean {
    return this.held(key).includes(OWN, Math.max(0, this.#prefix.length - OWN.length + 1))
  }

  /** The keys of foreign clients that may be read when the lock is freed. */
  companions(key: string): readonly string[] {
    return this.#companions(this.held(key))
  }

  /** The lock key of a name made by {@link held}; undefined for a name of other data. */
  keyOfHeld(name: string): string | undefined {
    if (!name.startsWith(this.#prefix)) return undefined
    const key = name.slice(this.#prefix.length)
    return key.startsWith(LAYOUT) ? undefined : key
  }

  /** The names for the slot of a lock or store key. */
  group(key: string): Group {
    const tag = this.#tag(key)
    const known = this.#groups.get(tag)
    if (known) return known
    const group = groupAt(`${this.#prefix}${LAYOUT}{${tag}}:`)
    this.#groups.set(tag, group)
    return group
  }

  /** The key of a value; also the channel on which its changes are published. */
  value(key: string): string {
    return this.#inSlot('value', key)
  }

  /** The key of the IDs that are recorded with a store key. */
  ids(key: string): string {
    return this.#inSlot('ids', key)
  }

  /** The key of the state of a limiter. */
  limit(name: string): string {
    return this.#inSlot('limit', name)
  }

  /** A pattern for SCAN that finds all limiters. */
  get limitsPattern(): string {
    return `${escaped(this.#prefix + LAYOUT)}*}:limit:*`
  }

  /** The key of a name made by {@link value}, {@link ids} or {@link limit}; undefined for any other. */
  keyOf(what: 'value' | 'ids' | 'limit', name: string): string | undefined {
    const tag = name.indexOf('}', this.#prefix.length)
    const word = `}:${what}:`
    return name.startsWith(word, tag) ? name.slice(tag + word.length) : undefined
  }

  /** A pattern for SCAN that finds the values of all store keys that begin with `start`. */
  valuePattern(start: string): string {
    return `${escaped(this.#prefix + LAYOUT)}{*}:value:${escaped(start)}*`
  }

  /** A pattern for SCAN that finds the held keys of all lock keys that begin with `start`. */
  heldPattern(start: string): string {
    return `${escaped(this.#prefix + start)}*`
  }

  /** A pattern for SCAN that finds the hashes with the requests of all slots. */
  get requestsPattern(): string {
    return `${escaped(this.#prefix + LAYOUT)}*:requests`
  }

  /** The names of the slot of a name that {@link requestsPattern} finds. */
  groupOfRequests(name: string): Group {
    return groupAt(name.slice(0, -'requests'.length))
  }

  #inSlot(word: string, key: string): string {
    return `${this.#prefix}${LAYOUT}{${this.#tag(key)}}:${word}:${key}`
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
