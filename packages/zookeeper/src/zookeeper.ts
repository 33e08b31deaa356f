import type { ConnectionOptions } from 'node:tls'
import type { Acl } from './acl.js'
import type { Call, OperationOptions } from './call.js'
import { calls, type ChildrenAndStat, type Created, type CreateOptions, type DataAndStat } from './calls.js'
import type { SaslUser } from './digest-md5.js'
import { milliseconds, type Duration } from './duration.js'
import { InvalidArgumentError, NoNodeError, RefusedError } from './errors.js'
import { parseEnsemble } from './hosts.js'
import { multi } from './multi.js'
import { Session } from './session.js'
import type { Stat } from './stat.js'
import { Transaction } from './transaction.js'
import type { WatchListener } from './watch-event.js'
import { WatchStream } from './watch-stream.js'

/** Options of a client. */
export interface ConnectOptions {
  /** Time for which the session survives without contact; servers adjust it to their own bounds. Default 10 s. */
  readonly sessionTimeout?: Duration
  /** Maximum time to connect for the first time. Default 10 s. */
  readonly timeout?: Duration
  /** The client's identities, for ACLs: `{ scheme: 'digest', data: 'user:password' }`. */
  readonly auth?: readonly { readonly scheme: string; readonly data: string | Uint8Array }[]
  /**
   * The client's user, for SASL's DIGEST-MD5. The client authenticates with each server before anything else, as
   * servers with `java.security.auth.login.config` require.
   */
  readonly sasl?: SaslUser
  /** Uses TLS, with these options of `node:tls`. */
  readonly tls?: ConnectionOptions
}

/** Options of a read. */
export interface ReadOptions extends OperationOptions {
  /**
   * Called once, with the next change, unless {@link ZooKeeper.unwatch} is called before. Passing the same listener
   * again before that has no effect.
   */
  readonly watch?: WatchListener
  /**
   * Asks the leader first for everything that is committed by now. Without it, a server that is behind returns an older
   * state. Costs a `sync`, which is sent in the same packet.
   */
  readonly linearizable?: boolean
}

/** Options of a persistent watch. */
export interface WatchOptions extends OperationOptions {
  /** Also watches everything below the node. */
  readonly recursive?: boolean
}

const ANY_VERSION = -1

/**
 * A client of a ZooKeeper ensemble with a session of its own.
 *
 * Every operation rejects with a RefusedError (a class for each reason) if a server refused it; with NotSentError if it
 * was certainly not applied, because no server was connected in time; with ConnectionLossError if it may have been
 * applied; with SessionExpiredError or ClosedError if the session has ended. Operations that change nothing are sent
 * again after a lost connection. For the others, only the caller knows how to find out whether they were applied.
 */
export class ZooKeeper extends Session {
  /**
   * Connects to `host:port,host:port/chroot`. The chroot need not exist.
   * @throws InvalidArgumentError; UnreachableError with the last cause if no server welcomes the client in time, or at
   * once with an AuthFailedError as its cause if one rejects the client's credentials
   */
  static async connect(ensemble: string, options: ConnectOptions = {}): Promise<ZooKeeper> {
    const { auth = [], sessionTimeout = 10_000, timeout = 10_000, tls, sasl } = options
    if (sasl && !(isWord(sasl.user) && isWord(sasl.password)))
      throw new InvalidArgumentError('sasl must be { user, password } with two strings that are not empty')
    const client = new ZooKeeper({
      ...parseEnsemble(ensemble),
      ensemble,
      sessionTimeout: milliseconds('sessionTimeout', sessionTimeout),
      tls,
      sasl,
    })
    for (const { scheme, data } of auth) await client.authenticate(scheme, data)
    await client.start(milliseconds('timeout', timeout))
    return client
  }

  /** Creates a node. Its parent must exist. */
  async create(
    path: string,
    data: string | Uint8Array = '',
    options: CreateOptions & OperationOptions = {},
  ): Promise<Created> {
    return this.submit(calls.create(path, data, options), options)
  }

  /** Deletes a node without children; only in this version, if given. */
  async delete(path: string, version = ANY_VERSION, options?: OperationOptions): Promise<void> {
    return this.submit(calls.delete(path, version), options)
  }

  /** Returns a node's stat; undefined if the node does not exist. A watch also reports its creation. */
  async exists(path: string, options: ReadOptions = {}): Promise<Stat | undefined> {
    return this.#read(calls.exists(path, options.watch), options)
  }

  /** Returns a node's data. */
  async getData(path: string, options: ReadOptions = {}): Promise<DataAndStat> {
    return this.#read(calls.getData(path, options.watch), options)
  }

  /** Writes a node's data; only over this version, if given. */
  async setData(
    path: string,
    data: string | Uint8Array,
    version = ANY_VERSION,
    options?: OperationOptions,
  ): Promise<Stat> {
    return this.submit(calls.setData(path, data, version), options)
  }

  /** Returns the names of a node's children, in no particular order. */
  async getChildren(path: string, options: ReadOptions = {}): Promise<ChildrenAndStat> {
    return this.#read(calls.getChildren(path, options.watch), options)
  }

  /**
   * Returns the names of the children of several nodes, in one request, in the order of the paths; undefined for a node
   * that does not exist.
   */
  async childrenOf(
    paths: readonly string[],
    options: Omit<ReadOptions, 'watch'> = {},
  ): Promise<(readonly string[] | undefined)[]> {
    const answers = await this.#read(calls.childrenOf(paths), options)
    return answers.map(answer => {
      if (!(answer instanceof RefusedError)) return answer
      if (answer instanceof NoNodeError) return undefined
      throw answer
    })
  }

  async getAcl(path: string, options?: OperationOptions): Promise<{ acl: Acl[]; stat: Stat }> {
    return this.submit(calls.getAcl(path), options)
  }

  /** Sets a node's ACL; only over this version of the ACL, if given. */
  async setAcl(
    path: string,
    acl: readonly Acl[],
    version = ANY_VERSION,
    options?: OperationOptions,
  ): Promise<Stat> {
    return this.submit(calls.setAcl(path, acl, version), options)
  }

  /** Waits until the connected server has everything that was committed when the leader was asked. */
  async sync(path = '/', options?: OperationOptions): Promise<void> {
    return this.submit(calls.sync(path), options)
  }

  /** Returns the paths of this session's ephemeral nodes at or below a path. */
  async getEphemerals(path = '/', options?: OperationOptions): Promise<string[]> {
    return this.submit(calls.getEphemerals(path), options)
  }

  /**
   * Returns a transaction of several changes and checks, which are applied together or not at all:
   * `transaction().check(…).setData(…).commit()`.
   */
  transaction(): Transaction {
    return new Transaction(async (parts, options) => this.submit(multi(parts), options))
  }

  /**
   * Returns the events of a node, and with `recursive` of everything below it, until the loop over them ends or the
   * watch is removed. After a lost connection, it yields `changed` of its path once, because servers do not report
   * missed events. It throws the error that ended the session.
   */
  async watch(path: string, options: WatchOptions = {}): Promise<WatchStream> {
    const stream = new WatchStream()
    stream.onReturn = await this.onChange(path, event => stream.push(event), options)
    return stream
  }

  /**
   * Like {@link watch}, by calls of `listener`, the last of which is `ended`. It lets the process end. Calling the
   * returned function removes it.
   */
  async onChange(path: string, listener: WatchListener, options: WatchOptions = {}): Promise<() => void> {
    const { recursive = false } = options
    // The same listener may be passed again, and each of its watches ends by itself.
    const own: WatchListener = event => listener(event)
    await this.submit(calls.addWatch(path, recursive, own), options)
    return () => this.unwatch(path, own)
  }

  /**
   * Removes a listener that was passed as `watch` to a read of a path, even before the read has its reply: it is not
   * called again, not even for the end. The server is notified if this client has no other listener at that path. Does
   * nothing if the listener is not there any more.
   * @throws InvalidArgumentError if the path is invalid
   */
  unwatch(path: string, watch: WatchListener): void {
    this.removeWatch(path, watch, calls.removeWatches(path))
  }

  async #read<T>(call: Call<T>, options: ReadOptions): Promise<T> {
    if (options.linearizable !== true) return this.submit(call, options)
    // One server answers both in order. If the connection is lost in between, both are sent again in order.
    const synced = this.submit(calls.sync(call.path), options)
    const [answer] = await Promise.all([this.submit(call, options), synced])
    return answer
  }
}

function isWord(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
