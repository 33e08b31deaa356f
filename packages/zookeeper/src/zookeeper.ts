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

/** How a client connects. */
export interface ConnectOptions {
  /** How long the session outlives silence; servers bring it within their own bounds. Default 10 s. */
  readonly sessionTimeout?: Duration
  /** How long connecting for the first time may take. Default 10 s. */
  readonly timeout?: Duration
  /** The client's identities, for ACLs: `{ scheme: 'digest', data: 'user:password' }`. */
  readonly auth?: readonly { readonly scheme: string; readonly data: string | Uint8Array }[]
  /**
   * The client's user, by SASL's DIGEST-MD5. It is shown to each server before anything else, as servers want it that
   * are configured with `java.security.auth.login.config`.
   */
  readonly sasl?: SaslUser
  /** Speaks TLS, with these options of `node:tls`. */
  readonly tls?: ConnectionOptions
}

/** How a node is read. */
export interface ReadOptions extends OperationOptions {
  /**
   * Is told of the next change, once, unless {@link ZooKeeper.unwatch} comes before. A listener that is given again
   * before that is one and the same.
   */
  readonly watch?: WatchListener
  /**
   * Asks the leader first for all that is committed by now. Without it, a server that is behind tells what was. Costs a
   * `sync`, which travels in the same packet.
   */
  readonly linearizable?: boolean
}

/** What is watched for long. */
export interface WatchOptions extends OperationOptions {
  /** All below the node, too. */
  readonly recursive?: boolean
}

const ANY_VERSION = -1

/**
 * A client of a ZooKeeper ensemble with a session of its own.
 *
 * Every operation rejects with a RefusedError (of a class for each reason) when a server refused it; with NotSentError
 * when it was certainly not applied, because no server was connected in its time; with ConnectionLossError when it may
 * have been applied; with SessionExpiredError or ClosedError when the session has ended. Operations that change nothing
 * are sent again after a lost connection; of the others, only the caller knows how to find out what became of them.
 */
export class ZooKeeper extends Session {
  /**
   * Connects to `host:port,host:port/chroot`. The chroot need not be there.
   * @throws InvalidArgumentError; UnreachableError with the last cause if no server welcomes the client in time, or
   * at once with an AuthFailedError as its cause if one rejects the client's credentials
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

  /** Creates a node; its parent has to be there. */
  async create(
    path: string,
    data: string | Uint8Array = '',
    options: CreateOptions & OperationOptions = {},
  ): Promise<Created> {
    return this.submit(calls.create(path, data, options), options)
  }

  /** Deletes a node without children; of this version only, if one is named. */
  async delete(path: string, version = ANY_VERSION, options?: OperationOptions): Promise<void> {
    return this.submit(calls.delete(path, version), options)
  }

  /** What is known of a node; undefined when there is none. A watch is told of its creation, too. */
  async exists(path: string, options: ReadOptions = {}): Promise<Stat | undefined> {
    return this.#read(calls.exists(path, options.watch), options)
  }

  /** A node's data. */
  async getData(path: string, options: ReadOptions = {}): Promise<DataAndStat> {
    return this.#read(calls.getData(path, options.watch), options)
  }

  /** Writes a node's data; over this version only, if one is named. */
  async setData(
    path: string,
    data: string | Uint8Array,
    version = ANY_VERSION,
    options?: OperationOptions,
  ): Promise<Stat> {
    return this.submit(calls.setData(path, data, version), options)
  }

  /** The names of a node's children, in no order. */
  async getChildren(path: string, options: ReadOptions = {}): Promise<ChildrenAndStat> {
    return this.#read(calls.getChildren(path, options.watch), options)
  }

  /**
   * The names of the children of several nodes, in one request, in the order of the paths; undefined for a node that is
   * not there.
   */
  async childrenOf(
    paths: readonly string[],
    options?: OperationOptions,
  ): Promise<(readonly string[] | undefined)[]> {
    const answers = await this.submit(calls.childrenOf(paths), options)
    return answers.map(answer => {
      if (!(answer instanceof RefusedError)) return answer
      if (answer instanceof NoNodeError) return undefined
      throw answer
    })
  }

  async getAcl(path: string, options?: OperationOptions): Promise<{ acl: Acl[]; stat: Stat }> {
    return this.submit(calls.getAcl(path), options)
  }

  /** Sets who may do what; over this version of the ACL only, if one is named. */
  async setAcl(
    path: string,
    acl: readonly Acl[],
    version = ANY_VERSION,
    options?: OperationOptions,
  ): Promise<Stat> {
    return this.submit(calls.setAcl(path, acl, version), options)
  }

  /** Waits until the connected server has all that was committed when the leader was asked. */
  async sync(path = '/', options?: OperationOptions): Promise<void> {
    return this.submit(calls.sync(path), options)
  }

  /** The paths of this session's ephemeral nodes at or below a path. */
  async getEphemerals(path = '/', options?: OperationOptions): Promise<string[]> {
    return this.submit(calls.getEphemerals(path), options)
  }

  /**
   * Several changes and checks that are carried out together or not at all:
   * `transaction().check(…).setData(…).commit()`.
   */
  transaction(): Transaction {
    return new Transaction(async (parts, options) => this.submit(multi(parts), options))
  }

  /**
   * Events of a node, and with `recursive` of all below it, until the loop over them ends or the watch is removed.
   * After a lost connection it tells `changed` of its path once, because servers don't tell what was missed. It throws
   * what ended the session.
   */
  async watch(path: string, options: WatchOptions = {}): Promise<WatchStream> {
    const stream = new WatchStream()
    stream.onReturn = await this.onChange(path, event => stream.push(event), options)
    return stream
  }

  /**
   * As {@link watch}, by calls of `listener`, the last of which is `ended`; it keeps no process alive.
   * Calling the returned function removes it.
   */
  async onChange(path: string, listener: WatchListener, options: WatchOptions = {}): Promise<() => void> {
    const { recursive = false } = options
    // The same listener may be given again, and each of its watches ends by itself.
    const own: WatchListener = event => listener(event)
    await this.submit(calls.addWatch(path, recursive, own), options)
    return () => this.unwatch(path, own)
  }

  /**
   * Takes back a listener that was given as `watch` to a read of a path, whether that was answered or not: nothing more
   * is told to it, not even the end. Servers are told when this client has no other listener at that path. It is fine
   * when the listener is not there any more.
   * @throws InvalidArgumentError when that can't be a path
   */
  unwatch(path: string, watch: WatchListener): void {
    this.forgetWatch(path, watch, calls.removeWatches(path))
  }

  async #read<T>(call: Call<T>, options: ReadOptions): Promise<T> {
    if (options.linearizable !== true) return this.submit(call, options)
    // Both are answered in order by one server; when the connection is lost between, both are sent again in order.
    const synced = this.submit(calls.sync(call.path), options)
    const [answer] = await Promise.all([this.submit(call, options), synced])
    return answer
  }
}

function isWord(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
