import type { Client } from 'hazelcast-client'

interface Handle {
  unref?: () => unknown
}

interface Connection {
  readonly socket?: Handle & { readonly destroyed?: boolean }
  isAlive?: () => boolean
  close?: (reason: string, cause: Error | null) => void
}

/** What keeps a client's process alive, where it keeps it; no part of what the package documents, so all may be absent. */
interface Inside {
  readonly connectionRegistry?: {
    getConnections?: () => readonly Connection[]
  }
  readonly connectionManager?: {
    onConnectionClose?: (connection: Connection) => void
    readonly reconnectToMembersTask?: Task
    readonly heartbeatManager?: { task?: Task }
  }
  readonly invocationService?: { readonly cleanResourcesTask?: Task }
  readonly statistics?: { readonly statisticsSendTask?: Task }
}

/** One of the package's repeated tasks: it makes an interval when the first delay is over. */
interface Task {
  readonly timeoutId?: Handle
  readonly intervalId?: Handle
}

/** Sockets that were told: one that is closed, or not open yet, would note every further time for later. */
const quiet = new WeakSet<Handle>()

/**
 * Takes out the connections that the package takes for open although they are closed. While one is in its books nothing else
 * asks that member, and no new connection to it is made. One that a member ends while it is being let in stays there for
 * ever. One of which a write failed stays for a minute: the package destroys its socket then, before that tells of an error.
 */
export function dropClosed(client: Client): void {
  const { connectionRegistry, connectionManager } = client as unknown as Inside
  for (const connection of [...(connectionRegistry?.getConnections?.() ?? [])]) {
    if (connection.isAlive?.() === false) connectionManager?.onConnectionClose?.(connection)
    else if (connection.socket?.destroyed) connection.close?.('Its socket was closed.', null)
  }
}

/**
 * Lets a finished process end although the client is connected, which the package has no way to say. Called now and then,
 * because the client makes timers and sockets as it goes. A call that is under way has a timer of ours that keeps the
 * process alive.
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
