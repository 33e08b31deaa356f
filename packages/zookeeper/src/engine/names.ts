import type { Claim } from 'signalbox'

/** Characters that must be escaped in the name of a node. */
const PLAIN = /[^A-Za-z0-9_:@=+,.~-]/gu

/** Encodes a key as the name of a node: percent-encodes characters that are invalid in ZooKeeper or in a path. */
export function encodeKey(key: string): string {
  if (key === '.' || key === '..') return key.replaceAll('.', '%2E')
  return key.replace(PLAIN, escaped)
}

/** Decodes the name of a node; undefined for a name that {@link encodeKey} does not return. */
export function decodeKey(name: string): string | undefined {
  try {
    return decodeURIComponent(name)
  } catch {
    return undefined
  }
}

function escaped(character: string): string {
  return [...Buffer.from(character)]
    .map(byte => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('')
}

/** The paths of nodes, below the node that a box was opened on. */
export class NodePaths {
  readonly #root: string

  /** @param root '' for the whole tree. */
  constructor(root: string) {
    this.#root = root
  }

  /** The paths of the nodes above all others, parents first. */
  get folders(): readonly string[] {
    const above: string[] = []
    for (let at = this.#root.indexOf('/', 1); at > 0; at = this.#root.indexOf('/', at + 1))
      above.push(this.#root.slice(0, at))
    return [...above, ...this.shared]
  }

  /** The nodes in which boxes create all others, and the parent of these nodes, unless it is the root of the tree. */
  get shared(): readonly string[] {
    return [...(this.#root === '' ? [] : [this.#root]), this.locks, this.store, this.sessions]
  }

  get locks(): string {
    return `${this.#root}/locks`
  }

  get store(): string {
    return `${this.#root}/store`
  }

  get sessions(): string {
    return `${this.#root}/sessions`
  }

  /** Returns the node whose children contend for a key. */
  lock(key: string): string {
    return `${this.locks}/${encodeKey(key)}`
  }

  value(key: string): string {
    return `${this.store}/${encodeKey(key)}`
  }

  /** Returns the node whose changes notify a session that another client has deleted some of its nodes. */
  session(session: string): string {
    return `${this.sessions}/${encodeKey(session)}`
  }
}

/**
 * The prefix of the name of a node in the queue of a key; the server appends ten digits. Curator sorts by the part
 * after `lock-`, and finds the nodes of a request by the ID after `_c_`.
 */
export function nodePrefix(guid: string, claim: Claim): string {
  switch (claim.mode) {
    case 'exclusive':
      return `_c_${guid}-lock-`
    case 'shared':
      return `_c_${guid}-__READ__`
    case 'permits':
      return `_c_${guid}-${claim.permits}of${claim.max}-lock-`
  }
}

/**
 * The prefixes of the names of a node's twins, which locks of other libraries count if they don't count the node
 * itself. kazoo counts all names with `__lock__`, or `__rlock__` for a reader, right before the digits. Curator's
 * read-write lock counts `__WRIT__` there, and readers by the names that they have anyway. If Curator does not find the
 * part that it looks for, it sorts by the whole name. Twins begin with `_`, so they come after every number, and block
 * no earlier request.
 */
export function twinPrefixes(guid: string, { mode }: Claim): readonly string[] {
  const kinds = mode === 'shared' ? ['__rlock__'] : ['__lock__', '__WRIT__']
  return kinds.map(kind => `_c_${guid}${kind}`)
}

/** The ID that all names of one request share; undefined for a name of kazoo's own. */
export function guidOf(name: string): string | undefined {
  return /^_c_([0-9a-f-]{36})[-_]/.exec(name)?.[1]
}

/** The index at which the ID ends in a name that begins with one. */
const GUID_END = '_c_'.length + 36

/** Whether the name is that of a twin. Curator and kazoo use no such names. */
export function isTwin(name: string): boolean {
  return name.startsWith('__', GUID_END) && name.startsWith('_c_')
}

/**
 * Returns the names for a writer that becomes a reader, in the same places. Names of a reader stay as they are.
 * @param names the names of a node and its twins
 */
export function readerNames(names: readonly string[]): string[] {
  return names
    .filter(name => !/__WRIT__-?\d+$/.test(name))
    .map(name =>
      name.replace(/(?:-lock-|__lock__)(?=-?\d+$)/, writer =>
        writer === '-lock-' ? '-__READ__' : '__rlock__',
      ),
    )
}
