import { NUMBERS, refusal } from './client/errors.js'
import type { Acl, CreatedTogether, ZooKeeper } from './client/index.js'

/** A lock node to be created, named on by the server, or one to be deleted. */
export type Change =
  | { readonly type: 'create'; readonly prefix: string; readonly text: string }
  | { readonly type: 'delete'; readonly path: string }

/** What became of changes that were carried out. */
export interface Changed {
  /** In the order of the creations. */
  readonly created: readonly CreatedTogether[]
  /**
   * The names of the children of each node that was named, read after the changes; undefined where it was not there.
   * Whoever named none need not look at it.
   */
  readonly lists: Promise<readonly (readonly string[] | undefined)[]>
}

/** What one caller wants to be done together. */
interface Group {
  readonly changes: readonly Change[]
  readonly parents: readonly string[]
  readonly resolve: (changed: Changed) => void
  readonly reject: (error: unknown) => void
}

/** A request of more than 1 MiB is refused; shorter ones let others come in between. Bytes, about. */
const LARGEST = 128 * 1024
/** What a part takes beside its texts: bytes, about. */
const FRAMING = 64

/**
 * Creates and deletes lock nodes. What the callers of one tick want travels in one multi, because a server spends more on a
 * request than on a part of one. Where the server refuses it, nothing of it was applied, and each caller's part is carried
 * out alone, so that nobody fails because of another. No two that enter the queue of the same key go together: their
 * number is that of the transaction.
 */
export class Changes {
  readonly #acl: readonly Acl[]
  #client: ZooKeeper | undefined
  readonly #groups: Group[] = []

  constructor(acl: readonly Acl[]) {
    this.#acl = acl
  }

  /**
   * Carries out all changes or none, and reads the children of `parents` after them in the same packet.
   * Rejects as the client does; after a ConnectionLossError they may have been applied.
   */
  carryOut(client: ZooKeeper, changes: readonly Change[], parents: readonly string[] = []): Promise<Changed> {
    return new Promise((resolve, reject) => {
      if (this.#client !== client) this.#send()
      if (this.#groups.length === 0) {
        this.#client = client
        void endOfTick().then(() => this.#send())
      }
      this.#groups.push({ changes, parents, resolve, reject })
    })
  }

  /** Settles when all that was asked for by now has been sent. */
  async sent(): Promise<void> {
    await endOfTick()
    this.#send()
  }

  #send(): void {
    const client = this.#client!
    const groups = this.#groups.splice(0)
    let together: Group[] = []
    let size = 0
    const keys = new Set<string>()
    for (const group of groups) {
      const own = sizeOf(group)
      const { parents } = group
      if (together.length > 0 && (size + own > LARGEST || parents.some(parent => keys.has(parent)))) {
        this.#sendTogether(client, together)
        together = []
        size = 0
        keys.clear()
      }
      together.push(group)
      size += own
      for (const parent of parents) keys.add(parent)
    }
    if (together.length > 0) this.#sendTogether(client, together)
  }

  #sendTogether(client: ZooKeeper, groups: readonly Group[]): void {
    if (groups.length === 1) this.#sendAlone(client, groups[0]!)
    else
      this.#carryOutTogether(client, groups).catch((error: unknown) => {
        for (const { reject } of groups) reject(error)
      })
  }

  async #carryOutTogether(client: ZooKeeper, groups: readonly Group[]): Promise<void> {
    const transaction = client.transaction()
    for (const { changes } of groups) this.#add(transaction, changes)
    const parents = [...new Set(groups.flatMap(group => group.parents))]
    const answering = transaction.outcome()
    const lists = childrenByParent(client, parents)
    const outcome = await answering
    if (!outcome.done) {
      // Missing parents are the usual reason, and known by now.
      const known = await lists.catch(() => undefined)
      for (const group of groups) {
        const missing = known && group.parents.find(parent => known.get(parent) === undefined)
        if (missing === undefined) this.#sendAlone(client, group)
        else group.reject(refusal('create', missing, NUMBERS.noNode))
      }
      return
    }
    let at = 0
    for (const { changes, parents: own, resolve } of groups) {
      const answers = outcome.answers.slice(at, (at += changes.length))
      resolve({
        created: answers.filter(isCreated),
        lists: quiet(lists.then(all => own.map(parent => all.get(parent)))),
      })
    }
  }

  #sendAlone(client: ZooKeeper, { changes, parents, resolve, reject }: Group): void {
    const answering = this.#carryOutAlone(client, changes)
    const lists = quiet(childrenByParent(client, parents).then(all => parents.map(parent => all.get(parent))))
    answering.then(created => resolve({ created, lists }), reject)
  }

  async #carryOutAlone(client: ZooKeeper, changes: readonly Change[]): Promise<readonly CreatedTogether[]> {
    const [first] = changes
    if (changes.length > 1) {
      const transaction = client.transaction()
      this.#add(transaction, changes)
      return (await transaction.commit()).filter(isCreated)
    }
    if (first!.type === 'create') return [await client.create(first!.prefix, first!.text, this.#options)]
    await client.delete(first!.path)
    return []
  }

  #add(transaction: ReturnType<ZooKeeper['transaction']>, changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type === 'create') transaction.create(change.prefix, change.text, this.#options)
      else transaction.delete(change.path)
    }
  }

  get #options() {
    return { ephemeral: true, sequential: true, acl: this.#acl }
  }
}

/** Behind all that follows at once from what has just arrived. */
function endOfTick(): Promise<void> {
  return new Promise(resolve => {
    queueMicrotask(() => process.nextTick(resolve))
  })
}

type Lists = ReadonlyMap<string, readonly string[] | undefined>

const NO_LISTS: Promise<Lists> = Promise.resolve(new Map())

function childrenByParent(client: ZooKeeper, parents: readonly string[]): Promise<Lists> {
  if (parents.length === 0) return NO_LISTS
  const read = client.childrenOf(parents)
  return quiet(read.then(all => new Map(parents.map((parent, index) => [parent, all[index]]))))
}

/** A promise that may fail without anybody who looks. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

function isCreated(answer: unknown): answer is CreatedTogether {
  return answer !== undefined
}

function sizeOf({ changes }: Group): number {
  let size = 0
  for (const change of changes)
    size +=
      FRAMING + (change.type === 'create' ? change.prefix.length + change.text.length : change.path.length)
  return size
}
