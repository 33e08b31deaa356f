import type * as hazelcast from 'hazelcast-client'
import type { Client, ClientConfig, HazelcastJsonValue, IMap } from 'hazelcast-client'
import type { Clock, Timer } from '../../clock.js'
import { Reconnector } from '../../engine/kit/reconnector.js'
import type { Awaitable } from '../../engine/contract.js'
import { ClosedError, InvalidArgumentError, UnavailableError } from '../../errors.js'
import { answered, NoAnswerError, pause, RETRY_PAUSE } from './call.js'
import { closeHalfDead, dropClosed, eventConnections, quieten } from './client-internals.js'
import { mapNames, type HazelcastPlace } from './hazelcast-url.js'
import { madeBy, TABLE_KEY } from './table-record.js'

/** What a client has unless its configuration says otherwise. */
const PROPERTIES = {
  // It logs to standard output. What matters arrives as an error.
  'hazelcast.logging.level': 'OFF',
  // A connection that has gone silent is given up after this, and not only after a minute: milliseconds.
  'hazelcast.client.heartbeat.timeout': 15_000,
}

/** What is used of the client's package. */
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

/** How long connecting may take: milliseconds. */
const PATIENCE = 10_000
/** A client that finds no member for so long gives up for good: milliseconds. */
const CLIENT_PATIENCE = 5000
/**
 * By then a client has reported why its start fails. One that is silent waits two minutes for the list of members,
 * from a member that has died; another client gets it from another member. Milliseconds.
 */
const START_TIMEOUT = CLIENT_PATIENCE + 500
const CHECK_EVERY = 1000

/** A client that works, and its maps. */
export interface Linked {
  readonly client: Client
  /** Java programs and boxes lock the keys of this one. */
  readonly locks: IMap<string, unknown>
  /** The sessions, and the table's record, the only key that boxes lock. */
  readonly table: IMap<string, string>
  readonly values: IMap<string, HazelcastJsonValue>
}

/** What a link reports. */
export interface LinkListener {
  /** Another box has changed the table's record to this text. */
  changed(record: string): void
  /** Changes may have been missed, because a member was out of reach or the client is new. */
  missed(): void
}

/**
 * The client of the package, and a new one when it has died: a client that reaches no member for too long never comes
 * back.
 */
export class Link {
  readonly #place: HazelcastPlace
  readonly #by: string
  readonly #package: Package
  readonly #clock: Clock
  readonly #listener: LinkListener
  readonly #clients: Reconnector<Linked>
  /** The connections over which the client heard of changes at the last check. */
  #eventConnections: readonly object[] = []
  #checking: Timer | undefined

  /** @param by the name under which this box changes the record. */
  constructor(
    place: HazelcastPlace,
    by: string,
    clientPackage: Package,
    clock: Clock,
    listener: LinkListener,
  ) {
    this.#place = place
    this.#by = by
    this.#package = clientPackage
    this.#clock = clock
    this.#listener = listener
    this.#clients = new Reconnector(() => this.#connect(), clock)
  }

  /** The client that works; undefined while none does. */
  get now(): Linked | undefined {
    const linked = this.#clients.now
    if (!linked || linked.client.getLifecycleService().isRunning()) return linked
    this.#clients.lost(linked)
    return undefined
  }

  /** The client, as soon as one is connected. @throws UnavailableError when none is in time; ClosedError */
  get(): Awaitable<Linked> {
    return this.now ?? this.#clients.get()
  }

  /** Ends the client. Never throws. */
  async close(): Promise<void> {
    this.#checking?.cancel()
    const linked = await this.#clients.close()
    if (linked) await this.#end(linked.client)
  }

  async #connect(): Promise<Linked> {
    const { name } = this.#place
    const until = this.#clock.now() + PATIENCE
    for (;;) {
      if (this.#clients.isClosed) throw new ClosedError('the box was closed', { engine: name })
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
        if (!this.#isOfOneMember(error) || this.#clock.now() + RETRY_PAUSE >= until)
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
      clusterConnectTimeoutMillis: CLIENT_PATIENCE,
    }
    const connectionRetry = { ...retry, ...given.connectionStrategy?.connectionRetry }
    const { LifecycleState, JsonStringDeserializationPolicy } = this.#package
    return {
      ...given,
      // Entries are compared as texts, so they are read as texts.
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
    const names = mapNames(this.#place.map)
    const maps = Promise.all([
      client.getMap<string, unknown>(names[0]),
      client.getMap<string, string>(names[1]),
      client.getMap<string, HazelcastJsonValue>(names[2]),
    ])
    const [locks, table, values] = await answered(maps, this.#clock)
    const changed = ({ value }: { value: string | null }): void => {
      if (value !== null) this.#listener.changed(value)
    }
    const { Predicates } = this.#package
    // Without the predicate the member would send the changes of this box back to it, with the old record and the new.
    const listening = table.addEntryListenerWithPredicate(
      { added: changed, updated: changed },
      Predicates.not(Predicates.between('this', ...madeBy(this.#by))),
      TABLE_KEY,
      true,
    )
    await answered(listening, this.#clock)
    return { client, locks, table, values }
  }

  #connected({ client }: Linked): void {
    this.#eventConnections = eventConnections(client)
    this.#check(client)
    this.#listener.missed()
  }

  /** Whether a client failed to start because one member ended; the others may answer the next client. */
  #isOfOneMember(error: unknown): boolean {
    const hazelcast = this.#package
    const endings = [
      hazelcast.TargetDisconnectedError,
      hazelcast.TargetNotMemberError,
      hazelcast.MemberLeftError,
      hazelcast.HazelcastInstanceNotActiveError,
    ]
    return error instanceof NoAnswerError || endings.some(ending => error instanceof ending)
  }

  /** Checks the client now and then, because it reports nothing about its single connections. */
  #check(client: Client): void {
    this.#checking?.cancel()
    if (this.#clients.isClosed) return
    dropClosed(client)
    closeHalfDead(client)
    quieten(client)
    const before = this.#eventConnections
    this.#eventConnections = eventConnections(client)
    // A member reports changes over its own connection. Between an old connection and a new one it reported none.
    const isSame =
      before.length === this.#eventConnections.length &&
      before.every((each, index) => each === this.#eventConnections[index])
    if (!isSame) this.#listener.missed()
    this.#checking = this.#clock.after(
      CHECK_EVERY,
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
      // Nothing more can be done for it.
    }
  }
}
