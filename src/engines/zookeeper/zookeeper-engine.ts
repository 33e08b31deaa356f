import { randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.js'
import {
  ClosedError,
  IndeterminateError,
  InvalidArgumentError,
  SignalboxError,
  UnavailableError,
} from '../../errors.js'
import type { Claim } from '../../engine/claim.js'
import {
  ConnectionLossError,
  NodeExistsError,
  NoNodeError,
  NotSentError,
  RefusedError,
  SessionExpiredError,
  type Acl,
  type CreatedTogether,
  type WatchListener,
  type ZooKeeper,
} from './client/index.js'
import {
  CLAIM_WINDOW,
  entryLife,
  hearWithin,
  type Awaitable,
  type Commit,
  type CommitOutcome,
  type Engine,
  type Enqueue,
  type ExtendOrYield,
  type ForceRelease,
  type Granted,
  type Listener,
  type SessionInfo,
  type Operation,
  type OutcomeOf,
  type Patience,
  type Poll,
  type ReadOutcome,
  type ReadSet,
  type Renew,
  type RequestReport,
  type RequestStatus,
} from '../../engine/contract.js'
import { WriteQueue } from '../../write-queue.js'
import { deleteOwn, insist } from './client/settled.js'
import { Changes, type Changed } from './changes.js'
import { connectOptions } from './connect-options.js'
import { Connected } from './connected.js'
import { checkLosses } from './losses.js'
import { contendersOf, hasFollower, placeOf, type Contender, type Place } from './contenders.js'
import { ZOOKEEPER_GUARANTEES } from './guarantees.js'
import { byRequest, isGranted, keysOf, nodesOf, reports, withOthers } from './inspection.js'
import { nodePrefix, Places, readerNames, twinPrefixes } from './names.js'
import { nodeText } from './node-text.js'
import { queueOf } from './queue.js'
import { beginAnew, newRequest, pathOf, pathsOf, unwatch, type OwnNode, type OwnRequest } from './request.js'
import { ServerTime } from './server-time.js'
import { Values } from './values.js'
import type { ZooKeeperPlace } from './zookeeper-url.js'

/** Whoever heard nothing looks again after so long at the latest; the look costs no packet: milliseconds. */
const LOOK_AGAIN = 2000
/** The pause after a look that failed: milliseconds. */
const LOOK_PAUSE = 200
/**
 * Nobody else waits, as far as one server tells, for so long at the most, because it may be behind the others: milliseconds.
 */
const ALONE_FOR = 20
/** How long connecting may take: milliseconds. */
const PATIENCE = 10_000

/** Why a request could not be entered. */
type EntryProblem = typeof GONE | { readonly state: 'mismatch'; readonly key: string; readonly max: number }

const GONE = { state: 'gone' } as const

type PatienceAndRead = Patience & Pick<Enqueue, 'read'>

/**
 * Locks and values as nodes of ZooKeeper. A request is an ephemeral sequential node for each of its keys, all created in
 * one multi, so that the queues agree on who is first; it is granted when nobody stands before it in any of them. With a
 * bridge each of them has twins, which say the same to locks of others that do not count it, and come and go with it.
 */
export class ZooKeeperEngine implements Engine {
  readonly name: string
  readonly guarantees = ZOOKEEPER_GUARANTEES
  readonly tellsWanted = false
  readonly #clock: Clock
  readonly #places: Places
  readonly #acl: readonly Acl[]
  readonly #isBridged: boolean
  readonly #connected: Connected
  readonly #values: Values
  readonly #writes: WriteQueue
  readonly #changes: Changes
  readonly #time = new ServerTime()
  readonly #requests = new Map<string, OwnRequest>()
  /** The store keys that are watched, each with what ends it in the session of now. */
  readonly #watched = new Map<string, { end: () => void }>()
  #member: SessionInfo | undefined
  #listener: Listener | undefined

  constructor(place: ZooKeeperPlace, clock: Clock) {
    const { name, ensemble, root, acl, isBridged } = place
    this.name = name
    this.#clock = clock
    this.#places = new Places(root)
    this.#acl = acl
    this.#isBridged = isBridged
    const options = { ...connectOptions(place), timeout: PATIENCE }
    this.#connected = new Connected(ensemble, options, name, clock, {
      begun: client => this.#begun(client),
      over: cause => this.#over(cause),
    })
    this.#changes = new Changes(this.#acl)
    this.#writes = new WriteQueue(name)
    this.#values = new Values(this.#places, this.#acl, clock, name, this.#time)
  }

  /** Until when what is held in the session of now is held for certain. */
  certainUntil(): number {
    return this.#connected.now?.certainUntil ?? -Infinity
  }

  async join(member: SessionInfo, listener: Listener): Promise<void> {
    this.#member = member
    this.#listener = listener
    try {
      await this.#connected.get()
    } catch (error) {
      this.#member = undefined
      throw this.#failure(error)
    }
  }

  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  submit(operation: Operation): Awaitable<unknown> {
    if (!this.#member) return Promise.reject(new ClosedError('the box was closed', { engine: this.name }))
    const outcome = this.#carryOut(operation)
    return outcome instanceof Promise
      ? outcome.catch((error: unknown) => {
          throw this.#failure(error)
        })
      : outcome
  }

  async leave(): Promise<void> {
    if (!this.#member) return
    this.#member = undefined
    for (const { timer, alone } of this.#requests.values()) {
      timer?.cancel()
      alone?.cancel()
    }
    this.#requests.clear()
    // What was released is answered before the session ends. The server deletes what is left.
    await this.#changes.sent()
    await this.#connected.close()
  }

  #carryOut(operation: Operation): Awaitable<unknown> {
    switch (operation.type) {
      case 'enqueue':
        return this.#enqueue(operation)
      case 'poll':
        return this.#poll(operation)
      case 'cancel':
        return this.#cancel(operation.request.id)
      case 'renew':
        return this.#renew(operation)
      case 'release':
        return this.#release(operation)
      case 'extendOrYield':
        return this.#extendOrYield(operation)
      case 'downgrade':
        return this.#downgrade(operation)
      case 'forceRelease':
        return this.#forceRelease(operation)
      case 'revoke':
        return this.#revoke(operation.session)
      case 'expire':
        // The server keeps the order: nothing is ever reserved by one session for another.
        return undefined
      case 'inspect':
        return this.#inspect(operation.prefix)
      case 'read':
        return this.#read(operation)
      case 'commit':
        return this.#commit(operation)
      case 'watch':
        return this.#watch(operation.key)
      case 'unwatch':
        this.#watched.get(operation.key)?.end()
        this.#watched.delete(operation.key)
        return undefined
    }
  }

  async #enqueue(operation: Enqueue): Promise<RequestStatus> {
    const known = this.#requests.get(operation.request.id)
    if (known) {
      await known.entered
      return this.#standing(known, operation)
    }
    const request = newRequest(operation.request, operation.lease, randomUUID(), key =>
      this.#places.lock(key),
    )
    return this.#enter(request, operation, undefined)
  }

  /** Creates the nodes of a request, in the place of those of another one if that is named, and says where it stands. */
  async #enter(
    request: OwnRequest,
    patience: PatienceAndRead,
    instead: OwnRequest | undefined,
  ): Promise<RequestStatus> {
    this.#requests.set(request.id, request)
    const entered = this.#create(request, instead)
    request.entered = entered.catch(() => undefined)
    let problem: EntryProblem | undefined
    try {
      problem = await entered
    } catch (error) {
      // Its nodes may be there, and only their place unknown.
      this.#discard(request)
      throw this.#aboutKeys(error, request.claims)
    }
    // Cancelled or ended with its session meanwhile; whoever did that sees to its nodes.
    if (this.#requests.get(request.id) !== request) return { state: 'gone' }
    if (problem) {
      await this.#remove(request)
      return problem
    }
    if (isFree(request)) request.phase = 'free'
    else if (patience.wait === 0) {
      await this.#remove(request)
      return { state: 'busy' }
    } else {
      request.phase = 'waiting'
      for (const node of request.nodes) if (!node.isFree) this.#watchBefore(request, node)
    }
    return this.#standing(request, patience)
  }

  /**
   * Settles when the nodes are there and it is known how they stand. Where the session ends meanwhile, nothing of them outlives
   * it: they are created in the next one.
   */
  async #create(request: OwnRequest, instead: OwnRequest | undefined): Promise<EntryProblem | undefined> {
    while (true) {
      const client = this.#connected.now ?? (await this.#connected.get())
      request.client = client
      client.keepCertain(true)
      try {
        const outcome = await this.#tryCreate(client, request, instead)
        if (outcome !== 'again') return outcome
      } catch (error) {
        if (!(error instanceof SessionExpiredError)) throw error
        // What it was to replace ended, too, and whoever cancelled it waits for it no more.
        if (instead || request.phase === 'gone') return GONE
        beginAnew(request, randomUUID())
      }
    }
  }

  async #tryCreate(
    client: ZooKeeper,
    request: OwnRequest,
    instead: OwnRequest | undefined,
  ): Promise<EntryProblem | 'again' | undefined> {
    const { nodes, guid } = request
    const left = instead?.nodes.flatMap(pathsOf) ?? []
    const leaving = left.map(path => ({ type: 'delete' as const, path }))
    const entering = nodes.flatMap(({ parent, claim }) => {
      const text = nodeText(this.#member!, request, claim)
      return this.#prefixes(guid, claim).map(prefix => ({
        type: 'create' as const,
        prefix: `${parent}/${prefix}`,
        text,
      }))
    })
    const parents = nodes.map(({ parent }) => parent)
    let listing: Changed['lists']
    try {
      const changed = await this.#changes.carryOut(client, [...leaving, ...entering], parents)
      listing = changed.lists
      const names = changed.created.map(({ path }) => path.slice(path.lastIndexOf('/') + 1))
      for (const node of nodes) {
        const own = names.splice(0, this.#prefixes(guid, node.claim).length)
        ;[node.name, ...node.twins] = own as [string, ...string[]]
      }
      const [first] = changed.created as [CreatedTogether]
      const stat = first.stat ?? (await client.exists(first.path))
      // Somebody deleted it at once.
      if (!stat) return GONE
      this.#time.saw(stat)
      request.number = Number(stat.czxid)
    } catch (error) {
      if (error instanceof ConnectionLossError) {
        if (!(await this.#find(client, request))) {
          checkLosses(++request.losses, { key: keyOf(request.claims), engine: this.name })
          return 'again'
        }
        listing = client.childrenOf(parents)
      } else if (error instanceof NoNodeError) {
        if (left.includes(error.path)) return GONE
        await this.#makeParents(client, nodes)
        return 'again'
      } else throw error
    }
    const lists = await listing
    for (const [index, node] of nodes.entries()) {
      const place = this.#place(node, await queueOf(client, node.parent, lists[index] ?? []))
      // Somebody deleted it at once.
      if (!place) return GONE
      if (place.state === 'mismatch') return { state: 'mismatch', key: node.claim.key, max: place.max }
    }
    return undefined
  }

  /** What the names of the nodes begin with by which a claim stands in its queue; those of the twins come last. */
  #prefixes(guid: string, claim: Claim): readonly string[] {
    const first = nodePrefix(guid, claim)
    return this.#isBridged ? [first, ...twinPrefixes(guid, claim)] : [first]
  }

  /** Parents are containers: the server deletes them some time after they are empty, so they are made whenever missed. */
  async #makeParents(client: ZooKeeper, nodes: readonly OwnNode[]): Promise<void> {
    await Promise.all(
      nodes.map(async ({ parent }) => {
        try {
          await client.create(parent, '', { container: true, acl: this.#acl })
        } catch (error) {
          if (error instanceof NoNodeError) await this.#makeFolders(client)
          else if (!(error instanceof NodeExistsError || error instanceof ConnectionLossError)) throw error
        }
      }),
    )
  }

  /**
   * Looks for the nodes of a request whose answer was lost. The server that lost it may not have passed it on yet, but
   * the session has moved, and what an old server still says for it is refused.
   */
  async #find(client: ZooKeeper, request: OwnRequest): Promise<boolean> {
    // As long as the session lives, its nodes may be in the way of others.
    return insist(() => this.#findOnce(client, request))
  }

  async #findOnce(client: ZooKeeper, request: OwnRequest): Promise<boolean> {
    let areAll = true
    for (const node of request.nodes) {
      let children: readonly string[] = []
      try {
        children = (await client.getChildren(node.parent, { linearizable: true })).children
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error
      }
      const names = this.#prefixes(request.guid, node.claim).map(prefix =>
        children.find(child => child.startsWith(prefix)),
      )
      node.name = names[0]
      node.twins = names.slice(1).filter(name => name !== undefined)
      const stat = node.name === undefined ? undefined : await client.exists(pathOf(node))
      if (stat?.ephemeralOwner === client.sessionId && !names.includes(undefined))
        request.number = Number(stat.czxid)
      else areAll = false
    }
    // All came in one transaction. Where somebody has taken one away since, the others must not stay in the way.
    if (!areAll) await Promise.all(request.nodes.flatMap(pathsOf).map(path => deleteQuietly(client, path)))
    return areAll
  }

  /** Notes how a node stands in its queue; undefined when it is not there. */
  #place(node: OwnNode, contenders: readonly Contender[]): Place | undefined {
    const index = contenders.findIndex(({ name }) => name === node.name)
    if (index < 0) return undefined
    const place = placeOf(contenders, index)
    node.isLast = index === contenders.length - 1
    if (place.state === 'free') {
      node.isFree = true
      node.hasFollower = hasFollower(contenders, index)
    } else if (place.state === 'blocked') {
      node.ahead = place.ahead
      node.before = place.watch
    }
    return place
  }

  /** Sees to it that the request is looked at when something before one of its nodes changes. */
  #watchBefore(request: OwnRequest, node: OwnNode): void {
    const look = (): void => this.#look(request)
    for (const name of node.before) {
      if (node.watched.has(name)) continue
      const watch: WatchListener = ({ type }) => {
        node.watched.delete(name)
        if (type !== 'ended') look()
      }
      node.watched.set(name, watch)
      // Reading it, because asking whether it exists would leave a watch for its coming where it has gone.
      request
        .client!.getData(`${node.parent}/${name}`, { watch })
        .then(({ stat }) => {
          // Touched before it was watched: it got in meanwhile. Once, because others may touch nodes, too.
          if (stat.version === 0 || node.touched === name) return
          node.touched = name
          look()
        })
        .catch(() => {
          node.watched.delete(name)
          look()
        })
    }
  }

  /** Looks at the queues in which a request is kept out, one look at a time. */
  #look(request: OwnRequest): void {
    if (request.phase !== 'waiting') return
    if (request.looking) {
      request.lookAgain = true
      return
    }
    request.looking = true
    void this.#lookOnce(request)
      .catch((error: unknown) => {
        // A parent goes when it has no children, and takes nobody along.
        if (error instanceof NoNodeError) this.#taken(request)
        else this.#clock.after(LOOK_PAUSE, () => this.#look(request), false)
      })
      .finally(() => {
        request.looking = false
        if (!request.lookAgain) return
        request.lookAgain = false
        this.#look(request)
      })
  }

  async #lookOnce(request: OwnRequest): Promise<void> {
    const client = request.client!
    const blocked = request.nodes.filter(node => !node.isFree)
    const queues = await Promise.all(
      blocked.map(async ({ parent }) => queueOf(client, parent, (await client.getChildren(parent)).children)),
    )
    if (request.phase !== 'waiting') return
    for (const [index, node] of blocked.entries()) {
      const place = this.#place(node, queues[index]!)
      // Somebody deleted it.
      if (!place) {
        this.#taken(request)
        return
      }
      if (place.state === 'blocked') this.#watchBefore(request, node)
      else if (node.hasFollower)
        void client.setData(pathOf(node), nodeText(this.#member!, request, node.claim)).catch(() => undefined)
    }
    if (!isFree(request)) return
    request.phase = 'free'
    unwatch(request)
    this.#arm(request, CLAIM_WINDOW)
    this.#listener!.wake(request.id)
  }

  async #poll(operation: Poll): Promise<RequestStatus> {
    const request = this.#requests.get(operation.request.id)
    if (!request) return { state: 'gone' }
    if (request.phase === 'entering') await request.entered
    return this.#standing(request, operation)
  }

  /** Answers for a request that has been entered, and counts it as heard of. */
  #standing(request: OwnRequest, patience: PatienceAndRead): Awaitable<RequestStatus> {
    const { id, nodes, number, phase } = request
    if (this.#requests.get(id) !== request || phase === 'gone' || phase === 'entering')
      return { state: 'gone' }
    request.lease = patience.lease
    if (phase === 'waiting') {
      this.#arm(request, entryLife(patience))
      const lookAgain = Math.min(hearWithin(patience), LOOK_AGAIN)
      return { state: 'queued', id, place: nodes[0]!.ahead, lookAgain, behind: [] }
    }
    if (this.#clock.now() >= request.client!.certainUntil) return this.#whenCertain(request, patience)
    request.phase = 'held'
    this.#arm(request, patience.lease)
    if (!patience.read) return { state: 'held', id, number }
    // What this server has seen of the queue it has seen of the values, so they need no `sync`.
    return this.#values.read(request.client!, patience.read, false).then(
      read => ({ state: 'held', id, number, read }),
      (error: unknown) => {
        // Nobody has heard of the grant.
        this.#discard(request)
        if (error instanceof SessionExpiredError) return GONE
        throw error
      },
    )
  }

  /** Answers when it is known that the session, and with it the request, is still there. */
  async #whenCertain(request: OwnRequest, patience: PatienceAndRead): Promise<RequestStatus> {
    try {
      await request.client!.certain()
    } catch {
      // What ended the session has ended the request, too.
      this.#discard(request)
      return GONE
    }
    return this.#standing(request, patience)
  }

  async #cancel(id: string): Promise<undefined> {
    const request = this.#requests.get(id)
    if (request) await this.#remove(request)
    return undefined
  }

  /** A node that an operator has deleted is found missing here, where nobody told of it. */
  async #renew(operation: Renew): Promise<boolean> {
    const request = this.#held(operation)
    if (!request) return false
    const paths = request.nodes.flatMap(pathsOf)
    const stats = await Promise.all(paths.map(path => request.client!.exists(path)))
    if (this.#held(operation) !== request) return false
    const staying = request.nodes.filter(({ isMoving }) => !isMoving).flatMap(pathsOf)
    if (paths.some((path, index) => !stats[index] && staying.includes(path))) {
      this.#taken(request)
      return false
    }
    this.#arm(request, operation.lease)
    return true
  }

  async #release(grant: Granted): Promise<boolean> {
    const request = this.#held(grant)
    return request ? this.#remove(request) : false
  }

  /**
   * One multi deletes the nodes and creates new ones, also where the grant is kept: a number of its own for a kept
   * grant would be greater than that of a request that came meanwhile and is granted after it.
   */
  async #extendOrYield(operation: ExtendOrYield): Promise<RequestStatus> {
    const held = this.#held(operation)
    if (!held) return { state: 'gone' }
    this.#forget(held)
    const request = newRequest(operation.next, operation.lease, randomUUID(), key => this.#places.lock(key))
    try {
      const standing = await this.#enter(request, operation, held)
      if (standing.state !== 'held' || !isAlone(request)) return standing
      this.#watchBehind(request)
      return { ...standing, isAlone: true }
    } catch (error) {
      // It may be there still.
      this.#discard(held)
      throw error
    }
  }

  /** Tells as soon as anybody stands behind a request behind which nobody stood. */
  #watchBehind(request: OwnRequest): void {
    // One and the same for all looks: what watches until somebody comes must not grow with them.
    const wanted = (request.wanted ??= () => {
      request.alone?.cancel()
      request.alone = undefined
      if (request.phase === 'held') this.#listener!.wanted(request.id)
    })
    request.alone = this.#clock.after(ALONE_FOR, wanted, false)
    for (const { parent, name } of request.nodes)
      request.client!.getChildren(parent, { watch: wanted }).then(
        // Whoever came before it was watched is not told.
        ({ children }) => contendersOf(children).at(-1)?.name !== name && wanted(),
        wanted,
      )
  }

  /** What is asked for meanwhile, such as a release, waits for it: its nodes get other names. */
  async #downgrade(grant: Granted): Promise<boolean> {
    const request = this.#held(grant)
    if (!request) return false
    const member = this.#member!
    const replaced = request.entered.then(() => this.#replaceByShared(request, member))
    request.entered = replaced.catch(() => undefined)
    return replaced
  }

  /** Each exclusive node, and its twins, is replaced by shared ones of the same number, so that it keeps its place. */
  async #replaceByShared(request: OwnRequest, member: SessionInfo): Promise<boolean> {
    const client = request.client!
    const transaction = client.transaction()
    const moving: (Pick<OwnNode, 'name' | 'twins'> & { node: OwnNode })[] = []
    for (const node of request.nodes) {
      if (node.claim.mode !== 'exclusive') continue
      const text = nodeText(member, request, node.claim, request.number)
      const [name, ...twins] = readerNames([node.name!, ...node.twins])
      // Done already.
      if (name === node.name) continue
      moving.push({ node, name, twins })
      for (const path of pathsOf({ ...node, name, twins }))
        transaction.create(path, text, { ephemeral: true, acl: this.#acl })
      for (const path of pathsOf(node)) transaction.delete(path)
    }
    if (moving.length === 0) return true
    for (const { node } of moving) node.isMoving = true
    try {
      const outcome = await transaction.outcome()
      if (!outcome.done) {
        if (!(outcome.error instanceof NoNodeError)) throw outcome.error
        this.#taken(request)
        return false
      }
      for (const { node, name, twins } of moving) Object.assign(node, { name, twins })
    } catch (error) {
      if (!(error instanceof ConnectionLossError)) throw error
      const { node, name } = moving[0]!
      if ((await client.exists(`${node.parent}/${name!}`, { linearizable: true })) === undefined) throw error
      for (const { node, name, twins } of moving) Object.assign(node, { name, twins })
    } finally {
      for (const { node } of moving) node.isMoving = false
    }
    return true
  }

  async #forceRelease({ key, number }: ForceRelease): Promise<boolean> {
    const client = await this.#connected.get()
    await client.sync(this.#places.locks)
    const found = (await nodesOf(client, this.#places, [key])).find(node => node.number === number)
    if (!found) return false
    const all = await withOthers(client, this.#places, [found])
    const [request] = [...byRequest(all).values()].filter(nodes => nodes.includes(found))
    if (!request || !isGranted(request)) return false
    return this.#takeAway(client, request)
  }

  async #revoke(session: string): Promise<number> {
    const client = await this.#connected.get()
    const nodes = await nodesOf(client, this.#places, await keysOf(client, this.#places, ''))
    const requests = byRequest(nodes.filter(({ text }) => text?.session === session))
    let count = 0
    for (const request of requests.values()) if (await this.#takeAway(client, request)) count++
    return count
  }

  /** Deletes the nodes of somebody's request and tells that session. */
  async #takeAway(
    client: ZooKeeper,
    nodes: readonly { paths: readonly string[]; text: { session: string } | undefined }[],
  ) {
    const transaction = client.transaction()
    for (const path of nodes.flatMap(({ paths }) => paths)) transaction.delete(path)
    const outcome = await transaction.outcome()
    if (!outcome.done && !(outcome.error instanceof NoNodeError)) throw outcome.error
    const session = nodes[0]!.text?.session
    if (session !== undefined) {
      // Whoever is gone need not be told.
      await client.setData(this.#places.session(session), '').catch((error: unknown) => {
        if (!(error instanceof NoNodeError)) throw error
      })
    }
    return outcome.done
  }

  #inspect(prefix: string): Promise<readonly RequestReport[]> {
    return this.#inSession(client => reports(client, this.#places, prefix))
  }

  #read(what: ReadSet): Promise<ReadOutcome> {
    return this.#inSession(client => this.#values.read(client, what, true))
  }

  /** Does what changes nothing when the session ends meanwhile: then it is done in the next one. */
  async #inSession<T>(work: (client: ZooKeeper) => Promise<T>): Promise<T> {
    while (true) {
      const client = await this.#connected.get()
      try {
        return await work(client)
      } catch (error) {
        if (!(error instanceof SessionExpiredError)) throw error
      }
    }
  }

  async #commit(commit: Commit): Promise<CommitOutcome> {
    try {
      return await this.#commitGuarded(commit)
    } catch (error) {
      throw this.#aboutKeys(error, [...commit.writes, ...commit.expect])
    }
  }

  async #commitGuarded(commit: Commit): Promise<CommitOutcome> {
    const { guard, release } = commit
    if (!guard) return this.#commitUnguarded(commit)
    const request = this.#held(guard)
    if (!request) return this.#inSession(client => this.#values.commit(client, commit, 'lost'))
    const paths = request.nodes.flatMap(pathsOf)
    let outcome: CommitOutcome
    try {
      outcome = await this.#values.commit(request.client!, commit, { paths, release })
    } catch (error) {
      if (!(error instanceof SessionExpiredError)) throw error
      // The session ended before it was sent, so nothing was written; the same may have been by another one before.
      return this.#inSession(client => this.#values.commit(client, commit, 'lost'))
    }
    if (outcome.state === 'committed' && release) this.#forget(request)
    return outcome
  }

  #commitUnguarded(commit: Commit): Promise<CommitOutcome> {
    const write = () => this.#inSession(client => this.#values.commit(client, commit, undefined))
    const [first] = commit.writes
    return first ? this.#writes.run(first.key, write) : write()
  }

  async #watch(key: string): Promise<undefined> {
    const client = await this.#connected.get()
    if (!this.#watched.has(key)) this.#watched.set(key, { end: () => undefined })
    await this.#watchValue(client, key)
    return undefined
  }

  async #watchValue(client: ZooKeeper, key: string): Promise<void> {
    const end = await client.onChange(this.#places.value(key), ({ type }) => {
      if (type !== 'ended') this.#listener!.changed(key)
    })
    const watch = this.#watched.get(key)
    if (watch) watch.end = end
    else end()
  }

  /** The grant of this session with that number. */
  #held({ request: { id }, number }: Granted): OwnRequest | undefined {
    const request = this.#requests.get(id)
    return request?.phase === 'held' && request.number === number ? request : undefined
  }

  /** Ends a request unless it is heard of within so many milliseconds. */
  #arm(request: OwnRequest, life: number): void {
    request.timer?.cancel()
    request.timer = this.#clock.after(life, () => this.#discard(request), false)
  }

  /** Has nothing to do with it any more. */
  #forget(request: OwnRequest): void {
    request.phase = 'gone'
    request.timer?.cancel()
    request.alone?.cancel()
    unwatch(request)
    if (this.#requests.get(request.id) === request) this.#requests.delete(request.id)
    if (this.#requests.size === 0) this.#connected.now?.keepCertain(false)
  }

  /** Its nodes are not there any more, and nobody here deleted them. */
  #taken(request: OwnRequest): void {
    this.#discard(request)
    this.#listener!.lost(request.id)
  }

  /**
   * Deletes the nodes of a request, again and again until they are gone or their session is over.
   * Gives whether all were there.
   * @throws RefusedError when the server does not allow it
   */
  async #remove(request: OwnRequest): Promise<boolean> {
    this.#forget(request)
    await request.entered
    const { client } = request
    const paths = request.nodes.flatMap(pathsOf)
    if (!client || paths.length === 0) return false
    let isAgain = false
    while (true) {
      try {
        await this.#changes.carryOut(
          client,
          paths.map(path => ({ type: 'delete', path })),
        )
        return true
      } catch (error) {
        if (error instanceof NoNodeError) {
          if (paths.length > 1) await Promise.all(paths.map(path => deleteQuietly(client, path)))
          // What is not there now, the lost request has deleted.
          return isAgain
        }
        if (error instanceof RefusedError) throw error
        if (!(error instanceof ConnectionLossError || error instanceof NotSentError)) return false
        isAgain = true
      }
    }
  }

  /** Removes a request as far as the server allows it; the rest goes with the session. */
  #discard(request: OwnRequest): void {
    this.#remove(request).catch(() => undefined)
  }

  async #begun(client: ZooKeeper): Promise<void> {
    await this.#makeFolders(client)
    // Closed while it began.
    if (!this.#member) throw new ClosedError('the box was closed', { engine: this.name })
    const { session, ...about } = this.#member
    const path = this.#places.session(session)
    await this.#makeOwn(client, path, JSON.stringify(about))
    await client.onChange(path, ({ type }) => {
      if (type !== 'ended') void this.#verify(client).catch(() => undefined)
    })
    for (const key of this.#watched.keys()) await this.#watchValue(client, key)
    // What came between the sessions was told to neither.
    this.#listener!.missed()
  }

  /** Creates an ephemeral node of this session in the place of one of a session of this box before, if that is still there. */
  async #makeOwn(client: ZooKeeper, path: string, text: string): Promise<void> {
    const options = { ephemeral: true, acl: this.#acl }
    let isThere = false
    while (true) {
      try {
        if (isThere) await client.transaction().delete(path).create(path, text, options).commit()
        else this.#time.saw((await client.create(path, text, options)).stat)
        return
      } catch (error) {
        if (error instanceof NodeExistsError) isThere = true
        // The server has just ended the session before.
        else if (error instanceof NoNodeError && isThere) isThere = false
        else if (!(error instanceof ConnectionLossError)) throw error
      }
    }
  }

  async #makeFolders(client: ZooKeeper): Promise<void> {
    const { folders } = this.#places
    const stats = await Promise.all(folders.map(path => client.exists(path)))
    for (const [index, path] of folders.entries()) if (!stats[index]) await this.#makeFolder(client, path)
  }

  async #makeFolder(client: ZooKeeper, path: string): Promise<void> {
    while (true) {
      try {
        await client.create(path, '', { acl: this.#acl })
        return
      } catch (error) {
        if (error instanceof NodeExistsError) return
        if (!(error instanceof ConnectionLossError)) throw error
      }
    }
  }

  /** Finds out what somebody took from this session. */
  async #verify(client: ZooKeeper): Promise<void> {
    const own = [...this.#requests.values()].filter(
      ({ phase, client: of }) =>
        of === client && (phase === 'waiting' || phase === 'free' || phase === 'held'),
    )
    const named = own.map(({ nodes }) => nodes.flatMap(pathsOf))
    const there = new Set(await client.getEphemerals(this.#places.locks))
    for (const [index, request] of own.entries()) {
      const paths = request.nodes.flatMap(pathsOf)
      const isSame = paths.every((path, place) => path === named[index]![place])
      if (request.phase === 'gone' || !isSame || request.nodes.some(({ isMoving }) => isMoving)) continue
      if (!paths.every(path => there.has(path))) this.#taken(request)
    }
  }

  /** All that the session had is gone. */
  #over(cause: Error): void {
    const all = [...this.#requests.values()]
    for (const request of all) {
      // What is being created fails by itself.
      if (request.phase === 'entering') continue
      this.#forget(request)
      this.#listener!.lost(request.id, cause)
    }
  }

  /** What the client refuses to send names a node; its caller is told the keys. */
  #aboutKeys(error: unknown, keyed: readonly { readonly key: string }[]): unknown {
    if (!(error instanceof InvalidArgumentError)) return error
    return new InvalidArgumentError(error.message, { key: keyOf(keyed), engine: this.name, cause: error })
  }

  /** As the contract wants errors. */
  #failure(error: unknown): Error {
    if (error instanceof SessionExpiredError)
      return new IndeterminateError(`the session of ${this.name} has expired meanwhile`, {
        engine: this.name,
        cause: error,
      })
    if (error instanceof SignalboxError) return error
    return new UnavailableError(
      `${this.name} refuses: ${error instanceof Error ? error.message : String(error)}`,
      {
        engine: this.name,
        cause: error,
      },
    )
  }
}

/** Deletes a node unless its session is over. Never throws: a node that can't be deleted goes with the session. */
function deleteQuietly(client: ZooKeeper, path: string): Promise<void> {
  return deleteOwn(client, path).catch(() => undefined)
}

/** What errors about several keys name. */
function keyOf(keyed: readonly { readonly key: string }[]): string {
  return [...new Set(keyed.map(({ key }) => key))].join(', ')
}

function isFree({ nodes }: OwnRequest): boolean {
  return nodes.every(node => node.isFree)
}

/** Whether a request keeps all others out, and nobody stands behind it. */
function isAlone({ nodes }: OwnRequest): boolean {
  return nodes.every(({ claim, isLast }) => claim.mode === 'exclusive' && isLast)
}
