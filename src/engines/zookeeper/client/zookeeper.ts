import type { ConnectionOptions } from 'node:tls'
import { systemClock } from '../../../clock.js'
import { milliseconds, type Duration } from '../../../duration.js'
import { InvalidArgumentError, shown } from '../../../errors.js'
import type { Acl } from './acl.js'
import type { Call, OperationOptions } from './call.js'
import { Calls, type ChildrenAndStat, type Created, type DataAndStat } from './calls.js'
import { NoNodeError, RefusedError } from './errors.js'
import { parseEnsemble } from './hosts.js'
import { multi, type MultiOutcome } from './multi.js'
import type { CreateOptions } from './node-kind.js'
import type { SaslUser } from './digest-md5.js'
import { below, checkPath } from './paths.js'
import { Session, type Sending, type SessionState } from './session.js'
import type { Stat } from './stat.js'
import { Transaction } from './transaction.js'
import type { WatchListener } from './watch-event.js'
import { WatchStream } from './watch-stream.js'

/** How a client connects. */
export interface ConnectOptions {
  /** How long the session outlives silence; servers bring it within their own bounds. Default 10 s. */
  readonly sessionTimeout?: Duration
  /** How long connecting for the first time may take. Default 10 s. */
  readonly timeout?: Duration
  /** Who this client is, for ACLs: `{ scheme: 'digest', data: 'user:password' }`. */
  readonly auth?: readonly { readonly scheme: string; readonly data: string | Uint8Array }[]
  /**
   * Who this client is, by SASL's DIGEST-MD5: shown to each server before anything else is asked, as servers want it that
   * are configured with `java.security.auth.login.config`.
   */
  readonly sasl?: SaslUser
  /** Speaks TLS, with these options of `node:tls`. */
  readonly tls?: ConnectionOptions
}

/** How a node is read. */
export interface ReadOptions extends OperationOptions {
  /**
   * Is told of the next change, once, unless {@link ZooKeeper.unwatch} comes before. A listener that is given again before
   * that is one and the same.
   */
  readonly watch?: WatchListener
  /**
   * Asks the leader first for all that is committed by now; a server that is behind would else tell what was. Costs a
   * `sync`, which travels in the same packet.
   */
  readonly linearizable?: boolean
}

/** What is watched for long. */
export interface WatchOptions extends OperationOptions {
  /** All below the node, too. */
  readonly recursive?: boolean
}

const NOTHING = new Uint8Array(0)
const ANY_VERSION = -1

/**
 * A client of a ZooKeeper ensemble with a session of its own.
 *
 * Every operation rejects with a RefusedError (of a class for each reason) when a server refused it; with NotSentError
 * when it was certainly not applied, because no server was connected in its time; with ConnectionLossError when it may have been
 * applied; with SessionExpiredError or ClosedError when the session has ended. Operations that change nothing are sent
 * again after a lost connection; of the others, only the caller knows how to find out what became of them.
 */
export class ZooKeeper implements AsyncDisposable {
  readonly #session: Session
  readonly #calls: Calls
  readonly #chroot: string

  private constructor(session: Session, chroot: string) {
    this.#session = session
    this.#calls = new Calls(chroot)
    this.#chroot = chroot
  }

  /**
   * Connects to `host:port,host:port/chroot`. The chroot need not be there.
   * @throws InvalidArgumentError; UnavailableError with the last cause when no server welcomes the client in time, or at
   * once with an AuthFailedError as its cause when one does not accept who the client is
   */
  static async connect(ensemble: string, options: ConnectOptions = {}): Promise<ZooKeeper> {
    const { hosts, chroot } = parseEnsemble(ensemble)
    const { auth = [], tls, sasl } = options
    if (sasl && !(isWord(sasl.user) && isWord(sasl.password)))
      throw new InvalidArgumentError('sasl takes { user, password }, two texts that are not empty')
    const session = new Session({
      name: `zookeeper://${ensemble}`,
      chroot,
      hosts,
      sessionTimeout: milliseconds('sessionTimeout', options.sessionTimeout ?? 10_000, SESSION_TIMEOUT),
      tls,
      sasl,
      clock: systemClock,
    })
    for (const { scheme, data } of auth) await session.authenticate(scheme, toBytes('auth data', data))
    await session.start(milliseconds('timeout', options.timeout ?? 10_000, CONNECT_TIMEOUT))
    return new ZooKeeper(session, chroot)
  }

  get state(): SessionState {
    return this.#session.state
  }

  /** The session's id. */
  get sessionId(): bigint {
    return this.#session.id
  }

  /** What server and client agreed on: milliseconds. */
  get sessionTimeout(): number {
    return this.#session.timeout
  }

  /**
   * Until when the session lives for certain, on the `systemClock` of `signalbox/engine`: milliseconds. No server gives
   * the session's nodes away before. Changes put it off, a transaction of checks included, and nothing else does: a server
   * that has lost its leader goes on to answer for a while. See {@link keepCertain}.
   */
  get certainUntil(): number {
    return this.#session.certainUntil
  }

  /**
   * Sees to it that {@link certainUntil} is between one and two thirds of the session's timeout ahead as long as the
   * servers can be reached, or no longer. That costs them a check each third of the timeout, which changes nothing.
   */
  keepCertain(isKept: boolean): void {
    this.#session.isKeptCertain = isKept
  }

  /** Settles when {@link certainUntil} is ahead. Rejects with what ended the session. */
  certain(): Promise<void> {
    return this.#session.certain()
  }

  /** The newest change that this client has seen the effects of. */
  get zxid(): bigint {
    return this.#session.zxid
  }

  /** How many paths are watched, each kind of watch counted. */
  get watched(): number {
    return this.#session.watched
  }

  /** Calls `listener` at each change of state, until the returned function is called. */
  onState(listener: (state: SessionState) => void): () => void {
    return this.#session.onState(listener)
  }

  /** Creates a node; its parent has to be there. */
  create(
    path: string,
    data: string | Uint8Array = NOTHING,
    options: CreateOptions & OperationOptions = {},
  ): Promise<Created> {
    return this.#submit(options, () => {
      checkPath(path, options.sequential)
      return this.#calls.create(path, toBytes('data', data), options)
    })
  }

  /** Deletes a node without children; of this version only, if one is named. */
  async delete(path: string, version = ANY_VERSION, options: OperationOptions = {}): Promise<void> {
    await this.#submit(options, () => this.#calls.delete(checked(path), version))
  }

  /** What is known of a node; undefined when there is none. A watch is told of its creation, too. */
  exists(path: string, options: ReadOptions = {}): Promise<Stat | undefined> {
    return this.#read(path, options, watch => this.#calls.exists(path, watch))
  }

  /** A node's data. */
  getData(path: string, options: ReadOptions = {}): Promise<DataAndStat> {
    return this.#read(path, options, watch => this.#calls.getData(path, watch))
  }

  /** Writes a node's data; over this version only, if one is named. */
  setData(
    path: string,
    data: string | Uint8Array,
    version = ANY_VERSION,
    options: OperationOptions = {},
  ): Promise<Stat> {
    return this.#submit(options, () => this.#calls.setData(checked(path), toBytes('data', data), version))
  }

  /** The names of a node's children, in no order. */
  getChildren(path: string, options: ReadOptions = {}): Promise<ChildrenAndStat> {
    return this.#read(path, options, watch => this.#calls.getChildren(path, watch))
  }

  /**
   * The names of the children of several nodes, in one request, in the order of the paths; undefined for a node that is
   * not there.
   */
  async childrenOf(
    paths: readonly string[],
    options: OperationOptions = {},
  ): Promise<(readonly string[] | undefined)[]> {
    const answers = await this.#submit(options, () => this.#calls.childrenOf(paths.map(checked)))
    return answers.map(answer => {
      if (!(answer instanceof RefusedError)) return answer
      if (answer instanceof NoNodeError) return undefined
      throw answer
    })
  }

  getAcl(path: string, options: OperationOptions = {}): Promise<{ acl: Acl[]; stat: Stat }> {
    return this.#submit(options, () => this.#calls.getAcl(checked(path)))
  }

  /** Sets who may do what; over this version of the ACL only, if one is named. */
  setAcl(
    path: string,
    acl: readonly Acl[],
    version = ANY_VERSION,
    options: OperationOptions = {},
  ): Promise<Stat> {
    return this.#submit(options, () => this.#calls.setAcl(checked(path), acl, version))
  }

  /** Waits until the connected server has all that was committed when the leader was asked. */
  async sync(path = '/', options: OperationOptions = {}): Promise<void> {
    await this.#submit(options, () => this.#calls.sync(checked(path)))
  }

  /** The paths of this session's ephemeral nodes at or below a path. */
  getEphemerals(path = '/', options: OperationOptions = {}): Promise<string[]> {
    return this.#submit(options, () => this.#calls.getEphemerals(checked(path)))
  }

  /** Several changes and checks that are carried out together or not at all: `transaction().check(…).setData(…).commit()`. */
  transaction(): Transaction {
    return new Transaction(this.#calls, (parts, options) => this.multi(parts, options))
  }

  /** Carries out parts that a {@link Transaction} has gathered. */
  async multi(parts: readonly Call<unknown>[], options: OperationOptions = {}): Promise<MultiOutcome> {
    return this.#submit(options, () => multi(parts))
  }

  /**
   * Events of a node, and with `recursive` of all below it, until the loop over them ends or the watch is removed.
   * After a lost connection it tells `changed` of its path once, because servers don't tell what was missed. It throws
   * what ended the session.
   */
  async watch(path: string, options: WatchOptions = {}): Promise<WatchStream> {
    const stream = new WatchStream(more => this.#session.awaits(more))
    stream.onReturn = await this.onChange(path, event => stream.push(event), options)
    return stream
  }

  /**
   * As {@link watch}, by calls of `listener`, the last of which is `ended`; it keeps no process alive.
   * Calling the returned function removes it.
   */
  async onChange(path: string, listener: WatchListener, options: WatchOptions = {}): Promise<() => void> {
    const { recursive = false } = options
    // The same listener may be given again, and each time ends by itself.
    const own: WatchListener = event => listener(event)
    await this.#submit(options, () => this.#calls.addWatch(checked(path), recursive, own))
    return () => this.unwatch(path, own)
  }

  /**
   * Takes back a listener that was given as `watch` to a read of a path, whether that was answered or not: nothing more is
   * told to it, not even the end. Servers are told when nobody else of this client listens at that path. Fine when it is not
   * there any more.
   * @throws InvalidArgumentError when that can't be a path
   */
  unwatch(path: string, watch: WatchListener): void {
    this.#session.unwatch(below(this.#chroot, checked(path)), watch, this.#calls.removeWatches(path))
  }

  /** Tells every server from now on who this client is, too. A refusal ends the session, as ZooKeeper wants it. */
  async authenticate(scheme: string, data: string | Uint8Array): Promise<void> {
    await this.#session.authenticate(scheme, toBytes('auth data', data))
  }

  /** Ends the session: its ephemeral nodes go, at once if a server is connected. Never throws. */
  close(): Promise<void> {
    return this.#session.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #read<T>(
    path: string,
    options: ReadOptions,
    call: (watch: WatchListener | undefined) => Call<T>,
  ): Promise<T> {
    const { watch, linearizable = false } = options
    if (!linearizable) return this.#submit(options, () => (checkPath(path), call(watch)))
    // Both are answered in order by one server; when the connection is lost between, both are sent again in order.
    const synced = this.#submit(options, () => this.#calls.sync(checked(path)))
    const read = this.#submit(options, () => call(watch))
    return Promise.all([read, synced]).then(([answer]) => answer)
  }

  /** Whatever is unfit rejects the promise, too. */
  async #submit<T>({ timeout, suspended }: OperationOptions, call: () => Call<T>): Promise<T> {
    const sending: Sending = {
      timeout: timeout === undefined ? undefined : milliseconds('timeout', timeout, CONNECT_TIMEOUT),
      suspended,
    }
    return this.#session.submit(call(), sending)
  }
}

const SESSION_TIMEOUT = { least: 1, most: 2 ** 31 - 1 }
const CONNECT_TIMEOUT = { least: 1, most: 2 ** 31 - 1 }

function checked(path: string): string {
  checkPath(path)
  return path
}

function isWord(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function toBytes(option: string, data: unknown): Uint8Array {
  if (typeof data === 'string') return Buffer.from(data)
  if (data instanceof Uint8Array) return data
  throw new InvalidArgumentError(`${option} takes text or bytes, not ${shown(data)}`)
}
