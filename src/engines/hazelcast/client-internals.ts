import type { Client } from 'hazelcast-client'

interface Handle {
  unref?: () => unknown
}

interface Connection {
  readonly socket?: Handle & { readonly destroyed?: boolean }
  isAlive?: () => boolean
  getLastReadTimeMillis?: () => number
  close?: (reason: string, cause: Error | null) => void
}

/** One of the package's repeated tasks: it makes an interval when the first delay is over. */
interface Task {
  readonly timeoutId?: Handle
  readonly intervalId?: Handle
}

/** A request without a reply. */
interface Invocation {
  readonly sendConnection?: Connection
  /** When the package gives it up, in milliseconds since 1970. */
  readonly deadline?: number
  /** Whether it may be sent again. If so, the member replies at once, unless it asks for a lock. */
  readonly request?: { isRetryable?: () => boolean }
}

/** Parts of a client that the package does not document, so all may be absent. */
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
  }
  readonly statistics?: { readonly statisticsSendTask?: Task }
  readonly listenerService?: {
    readonly registrations?: ReadonlyMap<
      unknown,
      { readonly connectionRegistrations?: ReadonlyMap<object, unknown> }
    >
  }
}

/** Sockets that were unreferenced. A socket that is closed, or not open yet, would note each further call for later. */
const quiet = new WeakSet<Handle>()

/**
 * Drops the connections that the package takes for open although they are closed. While it does, it asks that member
 * nothing more, and makes no new connection to it. A connection that a member ends while the client is being let in
 * stays so for ever. One of which a write failed stays so for a minute, because the package destroys its socket
 * before that reports an error.
 */
export function dropClosed(client: Client): void {
  const { connectionRegistry, connectionManager } = client as unknown as Inside
  for (const connection of [...(connectionRegistry?.getConnections?.() ?? [])]) {
    if (connection.isAlive?.() === false) connectionManager?.onConnectionClose?.(connection)
    else if (connection.socket?.destroyed) connection.close?.('Its socket was closed.', null)
  }
}

/** A connection that delivers something this long after a request, but no reply to it, is half dead. In milliseconds. */
const UNANSWERED = 3000

/** The connection of each request that was overdue at the last check. The package sends some again over another. */
const overdue = new WeakMap<Invocation, Connection>()

/**
 * Closes the connections that lose requests although they deliver changes, so that the client reconnects. The package
 * takes a connection for alive as long as it delivers anything, and closes silent ones. Called every second: a request
 * that is overdue twice is lost, and not just late because the member was stopped.
 */
export function closeHalfDead(client: Client): void {
  const { pending, invocationTimeoutMillis } = (client as unknown as Inside).invocationService ?? {}
  for (const invocation of [...(pending?.values() ?? [])]) {
    const { sendConnection: connection, deadline, request } = invocation
    // A request for a lock has no deadline, so it is never overdue.
    const sent = (deadline ?? NaN) - (invocationTimeoutMillis ?? NaN)
    if (!connection || request?.isRetryable?.() !== true) continue
    if (!((connection.getLastReadTimeMillis?.() ?? NaN) - sent > UNANSWERED)) continue
    if (overdue.get(invocation) === connection) connection.close?.('It loses requests.', null)
    overdue.set(invocation, connection)
  }
}

/**
 * Lets a finished process end although the client is connected, which the package has no option for. Called now and
 * then, because the client makes new timers and sockets. During a call a timer of ours keeps the process alive.
 */
export function quieten(client: Client): void {
  const { connectionRegistry, connectionManager, invocationService, statistics } = client as unknown as Inside
  for (const { socket } of connectionRegistry?.getConnections?.() ?? []) {
    if (!socket || quiet.has(socket)) continue
    quiet.add(socket)
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

/** The connections over which a client hears of events: for each listener those on which a member has accepted it. */
export function eventConnections(client: Client): readonly object[] {
  const { listenerService } = client as unknown as Inside
  return [...(listenerService?.registrations?.values() ?? [])].flatMap(({ connectionRegistrations }) => [
    ...(connectionRegistrations?.keys() ?? []),
  ])
}
