import type * as hazelcast from 'hazelcast-client'
import type { Client, ClientConfig, HazelcastJsonValue, IMap } from 'hazelcast-client'
import type { Clock, Timer } from '../../clock.js'
import { ClosedError, InvalidArgumentError, UnavailableError } from '../../errors.js'
import { answered, NoAnswerError } from './call.js'
import type { HazelcastPlace } from './hazelcast-url.js'
import { heardOver } from './heard-over.js'
import { dropClosed, quieten } from './quiet-client.js'
import { madeBy, TABLE_KEY } from './table-record.js'

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
 * What a client says about a start that fails, it says by then. One that is silent waits for the list of members from one
 * that has died, for two minutes: another client gets it from another member. Milliseconds.
 */
const START_TIMEOUT = CLIENT_PATIENCE + 500
const RETRY_PAUSE = 200
const LOOK_EVERY = 1000

/** A client that works, and its maps. */
export interface Linked {
  readonly client: Client
  /** The keys of this one are locked, by Java programs, too. */
  readonly locks: IMap<string, unknown>
  /** Who the sessions belong to, and the table's record. Nothing of this one is ever locked: a parked write would run late. */
  readonly table: IMap<string, string>
  readonly values: IMap<string, HazelcastJsonValue>
}

/** Who is told of the link. */
export interface LinkListener {
  /** The table's record, after another box has changed it. */
  changed(record: string): void
  /** The cluster, or a member, was out of reach, or another client took the place of one: changes may have been missed. */
  missed(): void
}

/**
 * The client, and another one in its place when it has died: that of Hazelcast does not come back when the members were out
 * of reach for too long.
 */
export class Link {
  readonly #place: HazelcastPlace
  readonly #by: string
  readonly #package: Package
  readonly #clock: Clock
  readonly #listener: LinkListener
  #linked: Linked | undefined
  #coming: Promise<Linked> | undefined
  /** Over which connections the client hears of changes, as it was seen last. */
  #heardOver: readonly object[] = []
  #wasLinked = false
  #looking: Timer | undefined
  #replacing: Timer | undefined
  #isClosed = false

  /** @param by what tells the changes of this box from those of others. */
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
  }

  /** The client that works now; undefined while none does. */
  get now(): Linked | undefined {
    const linked = this.#linked
    if (linked && !linked.client.getLifecycleService().isRunning()) {
      this.#linked = undefined
      return undefined
    }
    return linked
  }

  /** The client, as soon as one is connected. @throws UnavailableError when none is in time; ClosedError */
  async get(): Promise<Linked> {
    return this.now ?? (this.#coming ??= this.#connect().finally(() => (this.#coming = undefined)))
  }

  /** Ends the client. Never throws. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#looking?.cancel()
    this.#replacing?.cancel()
    const linked = this.#linked ?? (await this.#coming?.catch(() => undefined))
    this.#linked = undefined
    if (linked) await this.#end(linked.client)
  }

  async #connect(): Promise<Linked> {
    const { name } = this.#place
    const until = this.#clock.now() + PATIENCE
    for (;;) {
      if (this.#isClosed) throw new ClosedError('the box was closed', { engine: name })
      let client: Client | undefined
      try {
        client = await this.#start(Math.min(START_TIMEOUT, until - this.#clock.now()))
        const linked = await this.#prepare(client)
        this.#begin(linked)
        return linked
      } catch (error) {
        if (client) void this.#end(client)
        if (error instanceof this.#package.InvalidConfigurationError)
          throw new InvalidArgumentError(`hazelcast-client refuses its configuration: ${error.message}`, {
            engine: name,
            cause: error,
          })
        if (this.#isOfOneMember(error) && this.#clock.now() + RETRY_PAUSE < until) {
          await new Promise<void>(resolve => this.#clock.after(RETRY_PAUSE, resolve, true))
          continue
        }
        throw new UnavailableError(
          `no member of the cluster answers at ${name}: the address or the name of the cluster may be wrong, which the client can't tell apart`,
          { engine: name, cause: error },
        )
      }
    }
  }

  /** Whether a member that ends took the start of a client with it, while others may answer. */
  #isOfOneMember(error: unknown): boolean {
    const {
      TargetDisconnectedError,
      TargetNotMemberError,
      MemberLeftError,
      HazelcastInstanceNotActiveError,
    } = this.#package
    const endings = [
      TargetDisconnectedError,
      TargetNotMemberError,
      MemberLeftError,
      HazelcastInstanceNotActiveError,
    ]
    return error instanceof NoAnswerError || endings.some(ending => error instanceof ending)
  }

  #start(limit: number): Promise<Client> {
    const starting = this.#package.Client.newHazelcastClient(this.#config())
    return answered(starting, this.#clock, limit, late => void this.#end(late))
  }

  async #prepare(client: Client): Promise<Linked> {
    const { map } = this.#place
    const maps = Promise.all([
      client.getMap<string, unknown>(map),
      client.getMap<string, string>(`${map}.table`),
      client.getMap<string, HazelcastJsonValue>(`${map}.values`),
    ])
    const [locks, table, values] = await answered(maps, this.#clock)
    const changed = ({ value }: { value: string | null }): void => {
      if (value !== null) this.#listener.changed(value)
    }
    const { Predicates } = this.#package
    // What this box has changed would be sent back to it, too, the old record and the new one.
    const listening = table.addEntryListenerWithPredicate(
      { added: changed, updated: changed },
      Predicates.not(Predicates.between('this', ...madeBy(this.#by))),
      TABLE_KEY,
      true,
    )
    await answered(listening, this.#clock)
    return { client, locks, table, values }
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
      // Compared is the text, so it has to be seen as it is.
      serialization: {
        ...given.serialization,
        jsonStringDeserializationPolicy: JsonStringDeserializationPolicy.NO_DESERIALIZATION,
      },
      // It would write to standard output whatever it meets; what matters comes as an error.
      properties: { 'hazelcast.logging.level': 'OFF', ...given.properties },
      connectionStrategy: { ...given.connectionStrategy, connectionRetry },
      lifecycleListeners: [
        ...(given.lifecycleListeners ?? []),
        state => {
          if (state === LifecycleState.CONNECTED && this.#linked) this.#listener.missed()
          // Clients end, too, that were given up while they started.
          if (state === LifecycleState.SHUTDOWN && this.#wasLinked && !this.now) this.#replace()
        },
      ],
    }
  }

  #begin(linked: Linked): void {
    this.#linked = linked
    this.#heardOver = heardOver(linked.client)
    this.#look()
    if (this.#wasLinked) this.#listener.missed()
    this.#wasLinked = true
  }

  /** Again and again, as long as the box is open: somebody may wait for what only an event tells. */
  #replace(): void {
    if (this.#isClosed) return
    this.#replacing?.cancel()
    this.#replacing = this.#clock.after(
      RETRY_PAUSE,
      () => void this.get().catch(() => this.#replace()),
      false,
    )
  }

  /** Looks after the client now and then, because it tells nothing of its single connections. */
  #look(): void {
    this.#looking?.cancel()
    const linked = this.now
    if (!linked || this.#isClosed) return
    dropClosed(linked.client)
    quieten(linked.client)
    const before = this.#heardOver
    this.#heardOver = heardOver(linked.client)
    // A member tells of its changes over its own connection: what came between an old and a new one was told to nobody.
    const isSame =
      before.length === this.#heardOver.length &&
      before.every((each, index) => each === this.#heardOver[index])
    if (!isSame) this.#listener.missed()
    this.#looking = this.#clock.after(LOOK_EVERY, () => this.#look(), false)
  }

  async #end(client: Client): Promise<void> {
    try {
      await answered(client.shutdown(), this.#clock)
    } catch {
      // Nothing more can be done for it.
    }
  }
}
