import type * as hazelcast from 'hazelcast-client'
import type { Client, ClientConfig, HazelcastJsonValue, IMap } from 'hazelcast-client'
import { InvalidArgumentError, UnavailableError } from 'signalbox'
import { Reconnector, boxClosed, type Awaitable, type Clock, type Timer } from 'signalbox/engine'
import { answered, MIN_CALL_TIME, NoAnswerError, pause, RETRY_PAUSE } from './call.js'
import { closeHalfDead, dropClosed, eventConnections, repeatOnce, unrefAll } from './client-internals.js'
import { mapNames, type HazelcastPlace } from './hazelcast-url.js'

/** Default settings of a client. */
const PROPERTIES = {
  // It would log to standard output. Everything important is reported as an error.
  'hazelcast.logging.level': 'OFF',
  // Time after which a silent connection is closed, in milliseconds. The default of the package is a minute.
  'hazelcast.client.heartbeat.timeout': 15_000,
}

/** The parts of the client's package that are used. */
export type Package = Pick<
  typeof hazelcast,
  | 'Client'
  | 'InvalidConfigurationError'
  | 'HazelcastJsonValue'
  | 'HazelcastSerializationError'
  | 'JsonStringDeserializationPolicy'
  | 'LifecycleState'
  | 'HazelcastInstanceNotActiveError'
  | 'MemberLeftError'
  | 'TargetDisconnectedError'
  | 'TargetNotMemberError'
  | 'Predicates'
  | 'IllegalMonitorStateError'
>

/** Maximum time to connect, in milliseconds. */
const CONNECT_TIMEOUT = 10_000
/** A client that reaches no member for this long gives up for good, in milliseconds. */
const CLIENT_TIMEOUT = 5000
/**
 * Maximum time until a client reports why it can't start, in milliseconds. One that stays silent waits two minutes for
 * the list of members, from a member that has died; the next client asks another member.
 */
const START_TIMEOUT = CLIENT_TIMEOUT + 500
const CHECK_INTERVAL = 1000

/** A connected client, and its maps. */
export interface Linked {
  readonly client: Client
  /** Java programs and boxes lock the keys of this map. */
  readonly locks: IMap<string, unknown>
  /** The sessions, the hints for boxes, and the sets that wait. */
  readonly table: IMap<string, string>
  /** The locks and the value of each key. */
  readonly values: IMap<string, HazelcastJsonValue>
}

/** Receives the events of a link. */
export interface LinkListener {
  /** Called with the hints that another box has sent, as text. */
  hinted(text: string): void
  /** Called when changes may have been missed, because a member was unreachable or the client is new. */
  missed(): void
}

/**
 * The client of the package. Replaces a client that has died: one that reaches no member for too long never reconnects.
 */
export class Link {
  readonly #place: HazelcastPlace
  readonly #mailbox: () => string
  readonly #package: Package
  readonly #clock: Clock
  readonly #listener: LinkListener
  readonly #clients: Reconnector<Linked>
  /** The connections over which the client received events at the last check. */
  #eventConnections: readonly object[] = []
  #checking: Timer | undefined
  #failures = 0
  /** Whether each resent request is counted as a failure. */
  #countsRepeats = false

  /** @param mailbox the key of the entry to which other boxes write hints for this one; empty for none. */
  constructor(
    place: HazelcastPlace,
    mailbox: () => string,
    clientPackage: Package,
    clock: Clock,
    listener: LinkListener,
  ) {
    this.#place = place
    this.#mailbox = mailbox
    this.#package = clientPackage
    this.#clock = clock
    this.#listener = listener
    this.#clients = new Reconnector(() => this.#connect(), clock)
  }

  /** A counter of failures. While it stays the same, neither the client nor a member has resent a request. */
  get failures(): number {
    return this.#countsRepeats ? this.#failures : ++this.#failures
  }

  /** The current client; undefined if none is connected. */
  get now(): Linked | undefined {
    const linked = this.#clients.now
    if (!linked || linked.client.getLifecycleService().isRunning()) return linked
    this.#clients.lost(linked)
    return undefined
  }

  /** Returns a client as soon as one is connected. @throws UnavailableError if none is in time; ClosedError */
  get(): Awaitable<Linked> {
    return this.now ?? this.#clients.get()
  }

  /**
   * Does work, and repeats it if a connection is lost or a member ends meanwhile. Doing it twice must be harmless.
   * @param until the clock time at which to give up.
   */
  async repeat<T>(work: () => Promise<T>, until = this.#clock.now() + CONNECT_TIMEOUT): Promise<T> {
    for (;;) {
      try {
        return await answered(work(), this.#clock, Math.max(until - this.#clock.now(), MIN_CALL_TIME))
      } catch (error) {
        if (!this.#isOfOneMember(error) || this.#clock.now() + RETRY_PAUSE >= until) throw error
        await pause(this.#clock, true)
      }
    }
  }

  /** Shuts the client down. Never throws. */
  async close(): Promise<void> {
    this.#checking?.cancel()
    const linked = await this.#clients.close()
    if (linked) await this.#end(linked.client)
  }

  async #connect(): Promise<Linked> {
    const { name } = this.#place
    const until = this.#clock.now() + CONNECT_TIMEOUT
    for (;;) {
      if (this.#clients.isClosed) throw boxClosed(name)
      let client: Client | undefined
      try {
        client = await this.#start(Math.min(START_TIMEOUT, until - this.#clock.now()))
        const linked = await this.#prepare(client)
        this.#connected(linked)
        return linked
      } catch (error) {
        if (client) void this.#end(client)
        if (error instanceof this.#package.InvalidConfigurationError)
          throw new InvalidArgumentError(`hazelcast-client rejected its configuration: ${error.message}`, {
            engine: name,
            cause: error,
          })
        if (!this.#mayStart(error) || this.#clock.now() + RETRY_PAUSE >= until)
          throw new UnavailableError(
            `can't reach any member of the cluster at ${name}: the address or the name of the cluster may be wrong, ` +
              `which the client can't tell apart`,
            { engine: name, cause: error },
          )
        await pause(this.#clock, true)
      }
    }
  }

  #start(limit: number): Promise<Client> {
    const starting = this.#package.Client.newHazelcastClient(this.#config())
    return answered(starting, this.#clock, limit, late => void this.#end(late))
  }

  #config(): ClientConfig {
    const given = this.#place.config
    const retry = {
      initialBackoffMillis: 50,
      maxBackoffMillis: 500,
      clusterConnectTimeoutMillis: CLIENT_TIMEOUT,
    }
    const connectionRetry = { ...retry, ...given.connectionStrategy?.connectionRetry }
    const { LifecycleState, JsonStringDeserializationPolicy } = this.#package
    return {
      ...given,
      // Entries are compared as text, so they are read as text.
      serialization: {
        ...given.serialization,
        jsonStringDeserializationPolicy: JsonStringDeserializationPolicy.NO_DESERIALIZATION,
      },
      properties: { ...PROPERTIES, ...given.properties },
      connectionStrategy: { ...given.connectionStrategy, connectionRetry },
      lifecycleListeners: [
        ...(given.lifecycleListeners ?? []),
        state => {
          if (state === LifecycleState.CONNECTED && this.#clients.now) this.#listener.missed()
        },
      ],
    }
  }

  async #prepare(client: Client): Promise<Linked> {
    const failed = (): void => {
      this.#failures++
    }
    failed()
    const { smartRouting = true } = this.#place.config.network ?? {}
    // Otherwise one member sends requests to the others.
    this.#countsRepeats = repeatOnce(client, failed) && smartRouting
    const removed = (): void => {
      failed()
      // Entries may be lost with that member, even if this client had no connection to it.
      this.#listener.missed()
    }
    client.getCluster().addMembershipListener({ memberAdded: failed, memberRemoved: removed })
    const names = mapNames(this.#place.map)
    const maps = Promise.all([
      client.getMap<string, unknown>(names[0]),
      client.getMap<string, string>(names[1]),
      client.getMap<string, HazelcastJsonValue>(names[2]),
    ])
    const [locks, table, values] = await answered(maps, this.#clock)
    const mailbox = this.#mailbox()
    if (mailbox !== '') {
      const hinted = ({ value }: { value: string | null }): void => {
        if (value !== null) this.#listener.hinted(value)
      }
      const listening = table.addEntryListener({ added: hinted, updated: hinted }, mailbox, true)
      await answered(listening, this.#clock)
    }
    return { client, locks, table, values }
  }

  #connected({ client }: Linked): void {
    this.#eventConnections = eventConnections(client)
    this.#check(client)
    this.#listener.missed()
  }

  /** Whether a client failed to start because of one member. The next client may reach another one. */
  #mayStart(error: unknown): boolean {
    return error instanceof NoAnswerError || this.#isOfOneMember(error)
  }

  /** Whether a call failed because one member has ended, or the connection to it. */
  #isOfOneMember(error: unknown): boolean {
    const hazelcast = this.#package
    const endings = [
      hazelcast.TargetDisconnectedError,
      hazelcast.TargetNotMemberError,
      hazelcast.MemberLeftError,
      hazelcast.HazelcastInstanceNotActiveError,
    ]
    return endings.some(ending => error instanceof ending)
  }

  /** Checks the client regularly, because it reports nothing about single connections. */
  #check(client: Client): void {
    this.#checking?.cancel()
    if (this.#clients.isClosed) return
    dropClosed(client)
    closeHalfDead(client)
    unrefAll(client)
    const before = this.#eventConnections
    this.#eventConnections = eventConnections(client)
    // A member reports changes over its own connection, so changes between an old connection and a new one were missed.
    const isSame =
      before.length === this.#eventConnections.length &&
      before.every((each, index) => each === this.#eventConnections[index])
    if (!isSame) this.#listener.missed()
    this.#checking = this.#clock.after(
      CHECK_INTERVAL,
      () => {
        const linked = this.now
        if (linked) this.#check(linked.client)
      },
      false,
    )
  }

  async #end(client: Client): Promise<void> {
    try {
      await answered(client.shutdown(), this.#clock)
    } catch {
      // Nothing more can be done.
    }
  }
}
