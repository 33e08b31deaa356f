import type { Claim } from '../../engine/claim.js'

/** What needs no escape in the name of a node. */
const PLAIN = /[^A-Za-z0-9_:@=+,.~-]/gu

/** A key as the name of a node: characters that ZooKeeper or a path does not take are percent-encoded. */
export function encodeKey(key: string): string {
  if (key === '.' || key === '..') return key.replaceAll('.', '%2E')
  return key.replace(PLAIN, escaped)
}

/** The key of a node's name; undefined for a name that {@link encodeKey} does not make. */
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

/** Where things lie below the node that a box was opened on. */
export class NodePaths {
  readonly #root: string

  /** @param root '' for the whole tree. */
  constructor(root: string) {
    this.#root = root
  }

  /** What has to be there before anything else, parents first. */
  get folders(): readonly string[] {
    const above: string[] = []
    for (let at = this.#root.indexOf('/', 1); at > 0; at = this.#root.indexOf('/', at + 1))
      above.push(this.#root.slice(0, at))
    if (this.#root !== '') above.push(this.#root)
    return [...above, this.locks, this.store, this.sessions]
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

  /** The node whose children contend for a key. */
  lock(key: string): string {
    return `${this.locks}/${encodeKey(key)}`
  }

  value(key: string): string {
    return `${this.store}/${encodeKey(key)}`
  }

  /** The node by whose changes a session hears that another client took something from it. */
  session(session: string): string {
    return `${this.sessions}/${encodeKey(session)}`
  }
}

/**
 * What the name of a node in the queue of a key begins with; the server adds ten digits. Curator sorts by what follows
 * `lock-`, and finds the nodes of a request by the id after `_c_`.
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
 * What the names of a node's twins begin with. Locks of other libraries that do not count the node itself count its
 * twins. kazoo counts all names with `__lock__`, or `__rlock__` for a reader, right before the digits. Curator's
 * read-write lock counts `__WRIT__` there, and readers by the name that they have anyway. Curator sorts names without
 * what it looks for as a whole. Beginning with `_` they come behind every number, so that they keep out no request that
 * came before.
 */
export function twinPrefixes(guid: string, { mode }: Claim): readonly string[] {
  const kinds = mode === 'shared' ? ['__rlock__'] : ['__lock__', '__WRIT__']
  return kinds.map(kind => `_c_${guid}${kind}`)
}

/** The id that all names of one request have in common; undefined for a name of kazoo's own. */
export function guidOf(name: string): string | undefined {
  return /^_c_([0-9a-f-]{36})[-_]/.exec(name)?.[1]
}

/** Where the id ends in a name that begins with one. */
const GUID_END = '_c_'.length + 36

/** Whether the name of a contender is that of a twin; Curator and kazoo make no such names. */
export function isTwin(name: string): boolean {
  return name.startsWith('__', GUID_END) && name.startsWith('_c_')
}

/**
 * The names that a writer takes, in the same places, when it becomes a reader. Names of a reader stay as they are.
 * @param names of a node and its twins
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
