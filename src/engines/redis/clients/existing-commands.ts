import type { Clock } from '../../../base/clock.js'
import { UnavailableError } from '../../../base/errors.js'
import { pause } from '../../../base/pause.js'
import type { Timeouts, Reply } from './connection.js'
import { isDemoted, sendFailure, unanswered, unreachable, unsent } from './failures.js'
import type { ClientStatus, ExistingConnection } from './existing-client.js'
import { InFlight } from './in-flight.js'
import { Reconnecting } from './reconnecting.js'
import { ReconnectingConnection, assertReady } from './reconnecting-connection.js'
import type { ServerCommands } from './redis-link.js'

/** How often the status of a connecting client is checked, in milliseconds. */
const LOOK = 10
/** Maximum time for which commands wait for a client that has lost its connection, in milliseconds. */
const RECONNECTED_WITHIN = 1000

export interface ExistingCommandsParts {
  readonly name: string
  readonly client: ExistingConnection
  /** Called when the server has reported that it is no longer the master. */
  readonly demoted?: () => void
  readonly clock: Clock
  readonly timeouts: Timeouts
}

/**
 * Commands over an existing client, which connects and reconnects as its owner configured it. A command is passed to
 * the client only if it can be sent at once, so that none waits in the client's own queue. Later events in the client
 * are unknown here, so every failure except an error reply is indeterminate.
 *
 * Most clients stay connected permanently to a master that was demoted, or to a server that has stopped answering. Only
 * their owners may close these connections. So from then on commands use a connection of our own, with the client's
 * options.
 */
export class ExistingCommands implements ServerCommands {
  readonly #parts: ExistingCommandsParts
  readonly #inFlight: InFlight
  /** Replaces the client's connection. */
  #own: ReconnectingConnection | undefined
  /** The client's epoch when {@link #own} replaced its connection. */
  #epochBefore = 0
  /** Whether commands have waited for the client since it lost its connection. */
  #hasWaited = false
  readonly #reconnecting = new Reconnecting()
  #isClosed = false

  constructor(parts: ExistingCommandsParts) {
    const { name, timeouts } = parts
    this.#parts = parts
    this.#inFlight = new InFlight(parts.clock, timeouts.answer, {
      busy: () => undefined,
      idle: () => undefined,
      late: () => {
        this.#replaceClient()
        return unanswered(name, timeouts.answer)
      },
    })
  }

  get epoch(): number {
    return this.#own ? this.#epochBefore + this.#own.epoch : this.#parts.client.epoch
  }

  get isOver(): boolean {
    return this.#own?.isOver ?? this.#parts.client.status === 'closed'
  }

  get reconnecting(): Promise<void> | undefined {
    if (this.#own) return this.#own.reconnecting
    const { status } = this.#parts.client
    if (status === 'ready') this.#hasWaited = false
    else if (status === 'connecting' && !this.#hasWaited) {
      this.#hasWaited = true
      this.#reconnecting.begin(this.#reconnected())
    }
    return this.#reconnecting.now
  }

  async connect(): Promise<void> {
    const { client, name } = this.#parts
    await untilReady(client, this.#parts)
    try {
      await this.send(['PING'])
    } catch (error) {
      throw error instanceof UnavailableError ? error : unreachable(name, error)
    }
  }

  send(...commands: readonly (readonly string[])[]): Promise<Reply> {
    const { client, name } = this.#parts
    if (this.#own) return this.#sendOver(this.#own, commands)
    if (client.status !== 'ready') return unsent(notReady(name, client.status))
    for (const command of commands.slice(0, -1)) client.send(command).catch(() => undefined)
    return this.#inFlight.follow(client.send(commands.at(-1)!), error => {
      if (isDemoted(error)) {
        this.#replaceClient()
        this.#parts.demoted?.()
      }
      return sendFailure(name, error)
    })
  }

  /** Ends only the connection of our own. */
  close(): void {
    this.#isClosed = true
    this.#own?.close()
  }

  /** Settles when the client is connected again, has failed to connect, or takes too long. */
  async #reconnected(): Promise<void> {
    const { client, clock } = this.#parts
    const deadline = clock.now() + RECONNECTED_WITHIN
    // The epoch counts attempts. There may be two, because this process may be frozen during one.
    const lastAttempt = client.epoch + 2
    const isUnderWay = (): boolean => client.status === 'connecting' && client.epoch <= lastAttempt
    while (isUnderWay() && !this.#isClosed && clock.now() < deadline) await pause(LOOK, clock)
    if (client.status === 'ready') this.#hasWaited = false
  }

  #replaceClient(): void {
    const { client } = this.#parts
    if (this.#own || this.#isClosed) return
    this.#epochBefore = client.epoch
    this.#own = new ReconnectingConnection({
      ...this.#parts,
      connect: client.connect(),
      prepare: assertReady,
    })
    this.#own.connect().catch(() => undefined)
  }

  #sendOver(own: ReconnectingConnection, commands: readonly (readonly string[])[]): Promise<Reply> {
    // It reconnects by itself once it was connected.
    if (own.epoch === 0) own.connect().catch(() => undefined)
    return own.send(...commands)
  }
}

/**
 * Waits for a client to be ready.
 * @throws UnavailableError when it is closed, or not ready in time
 */
export async function untilReady(
  client: { readonly status: ClientStatus; wake(): void },
  { clock, name, timeouts }: { name: string; clock: Clock; timeouts: Timeouts },
): Promise<void> {
  const deadline = clock.now() + timeouts.connect
  for (let { status } = client; status !== 'ready'; status = client.status) {
    if (status === 'idle') client.wake()
    if (status === 'closed' || clock.now() > deadline) throw notReady(name, status)
    await pause(LOOK, clock)
  }
}

function notReady(name: string, status: ClientStatus): UnavailableError {
  const how = status === 'closed' ? 'not connected: connect it first' : 'connecting'
  return unreachable(name, new Error(`the client is ${how}`))
}
