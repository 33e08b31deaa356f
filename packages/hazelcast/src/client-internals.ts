import type { Client } from 'hazelcast-client'

interface Handle {
  unref?: () => unknown
}

interface Connection {
  readonly socket?: Handle & { readonly destroyed?: boolean }
  isAlive?: () => boolean
  getStartTime?: () => number
  getLastReadTimeMillis?: () => number
  close?: (reason: string, cause: Error | null) => void
}

/** One of the package's repeated tasks: a timeout first, then an interval. */
interface Task {
  readonly timeoutId?: Handle
  readonly intervalId?: Handle
}

/** A request without a reply. */
interface Invocation {
  sendConnection?: Connection | undefined
  /** The time at which the package gives up on it, in milliseconds since 1970. */
  readonly deadline?: number
  /** The reply, while the package waits for the members that make copies. */
  readonly pendingResponseMessage?: unknown
  /** Whether the package may resend it. The member replies to such a request at once, unless it is for a lock. */
  readonly request?: { isRetryable?: () => boolean }
}

/** Parts of a client that the package does not document, so any of them may be missing. */
interface Inside {
  readonly connectionRegistry?: {
    getConnections?: () => readonly Connection[]
  }
  readonly connectionManager?: {
    onConnectionClose?: (connection: Connection) => void
    readonly reconnectToMembersTask?: Task
    readonly heartbeatManager?: { task?: Task }
  }
  readonly invocationService?: {
    readonly cleanResourcesTask?: Task
    readonly pending?: ReadonlyMap<unknown, Invocation>
    readonly invocationTimeoutMillis?: number
    notifyError?: (invocation: Invocation, error: unknown) => void
  }
  readonly statistics?: { readonly statisticsSendTask?: Task }
  readonly listenerService?: {
    readonly registrations?: ReadonlyMap<
      unknown,
      { readonly connectionRegistrations?: ReadonlyMap<object, unknown> }
    >
  }
}

/** Sockets that were unreferenced. On a closed or connecting socket, each further call would add a listener. */
const unreferenced = new WeakSet<Handle>()

/**
 * Drops closed connections that the package considers open. Until then, it sends nothing more to that member, and does
 * not reconnect. If a member closes a connection while the client is being authenticated, the package never notices. If
 * a write has failed, it notices after a minute, because the package destroys the socket before the socket reports an
 * error.
 */
export function dropClosed(client: Client): void {
  const { connectionRegistry, connectionManager } = client as unknown as Inside
  for (const connection of [...(connectionRegistry?.getConnections?.() ?? [])]) {
    if (connection.isAlive?.() === false) connectionManager?.onConnectionClose?.(connection)
    else if (connection.socket?.destroyed) connection.close?.('Its socket was closed.', null)
  }
}

/**
 * Makes a client repeat a request once for each connection that it loses. Until the request is sent again, the package
 * schedules one more repetition every 100 ms, and sends them all, even after the reply. A repeated unlock would undo a
 * later lock.
 * @param failed is called whenever a request has failed, before it may be repeated.
 * @returns whether this version of the package can do that.
 */
export function repeatOnce(client: Client, failed: () => void): boolean {
  const { invocationService } = client as unknown as Inside
  const notifyError = invocationService?.notifyError
  if (!notifyError) return false
  invocationService.notifyError = (invocation, error) => {
    failed()
    invocation.sendConnection = undefined
    notifyError.call(invocationService, invocation, error)
  }
  return true
}

/**
 * A connection is half-dead if it delivers data this many milliseconds after a request, but no reply to the request.
 */
const UNANSWERED = 3000

/**
 * The connection of each request that was overdue at the last check. The package may resend a request on another one.
 */
const overdue = new WeakMap<Invocation, Connection>()

/**
 * Closes connections that lose requests but still deliver events, so that the client reconnects. The package considers
 * a connection alive as long as it delivers anything, and closes silent ones. Called every second: a request that is
 * overdue twice is lost, not just late because the member was stopped.
 */
export function closeHalfDead(client: Client): void {
  const { pending, invocationTimeoutMillis } = (client as unknown as Inside).invocationService ?? {}
  for (const invocation of [...(pending?.values() ?? [])]) {
    const { sendConnection: connection, deadline, request, pendingResponseMessage } = invocation
    if (!connection || pendingResponseMessage || request?.isRetryable?.() !== true) continue
    // A request for a lock has no deadline, so it is never overdue.
    const first = (deadline ?? NaN) - (invocationTimeoutMillis ?? NaN)
    const sent = Math.max(first, connection.getStartTime?.() ?? first)
    if (!((connection.getLastReadTimeMillis?.() ?? NaN) - sent > UNANSWERED)) continue
    if (overdue.get(invocation) === connection) connection.close?.('It loses requests.', null)
    overdue.set(invocation, connection)
  }
}

/**
 * Lets a finished process end although the client is connected; the package has no option for it. Called repeatedly,
 * because the client creates new timers and sockets. During a call, a timer of the engine keeps the process alive.
 */
export function unrefAll(client: Client): void {
  const { connectionRegistry, connectionManager, invocationService, statistics } = client as unknown as Inside
  for (const { socket } of connectionRegistry?.getConnections?.() ?? []) {
    if (!socket || unreferenced.has(socket)) continue
    unreferenced.add(socket)
    socket.unref?.()
  }
  for (const task of [
    connectionManager?.reconnectToMembersTask,
    connectionManager?.heartbeatManager?.task,
    invocationService?.cleanResourcesTask,
    statistics?.statisticsSendTask,
  ]) {
    task?.timeoutId?.unref?.()
    task?.intervalId?.unref?.()
  }
}

/**
 * The connections over which a client receives events: for each listener, those on which a member has registered it.
 */
export function eventConnections(client: Client): readonly object[] {
  const { listenerService } = client as unknown as Inside
  return [...(listenerService?.registrations?.values() ?? [])].flatMap(({ connectionRegistrations }) => [
    ...(connectionRegistrations?.keys() ?? []),
  ])
}
