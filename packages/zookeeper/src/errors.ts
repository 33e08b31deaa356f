/** What a caller can switch on: one code for each reason. */
export type ErrorCode =
  | RefusalCode
  | 'INVALID_ARGUMENT'
  | 'UNREACHABLE'
  | 'NOT_SENT'
  | 'CONNECTION_LOSS'
  | 'SESSION_EXPIRED'
  | 'CLOSED'
  | 'ABORTED'
  | 'NODE_DELETED'
  | 'UNEXPECTED_DATA'
  | 'PROTOCOL'

/** What an error is about, and the error beneath. */
export interface ErrorContext {
  /** The path of the node, as the client of a chroot knows it. */
  readonly path?: string | undefined
  /** The servers and the chroot, as `connect` got them. */
  readonly ensemble?: string | undefined
  readonly cause?: unknown
}

/** The base of every error that the client throws on purpose. */
export abstract class ZooKeeperError extends Error {
  abstract readonly code: ErrorCode
  readonly path: string | undefined
  /** Undefined for a refusal, and for an error about an argument or a recipe. */
  readonly ensemble: string | undefined

  constructor(message: string, context: ErrorContext = {}) {
    super(message, 'cause' in context ? { cause: context.cause } : undefined)
    this.name = new.target.name
    this.path = context.path
    this.ensemble = context.ensemble
  }
}

/** Why a server refused an operation. */
export type RefusalCode =
  | 'NO_NODE'
  | 'NODE_EXISTS'
  | 'BAD_VERSION'
  | 'NOT_EMPTY'
  | 'NO_CHILDREN_FOR_EPHEMERALS'
  | 'NO_AUTH'
  | 'INVALID_ACL'
  | 'AUTH_FAILED'
  | 'BAD_ARGUMENTS'
  | 'UNIMPLEMENTED'
  | 'NO_WATCHER'
  | 'QUOTA_EXCEEDED'
  | 'READ_ONLY'
  | 'OTHER'

/** A server understood an operation and refused it: it was certainly not applied. */
export class RefusedError extends ZooKeeperError {
  readonly code: RefusalCode
  /** What was refused, like `create`. */
  readonly operation: string
  declare readonly path: string
  /** The number by which the server says why. */
  readonly number: number

  constructor(operation: string, path: string, number: number, code: RefusalCode, why: string) {
    super(`${operation} ${path}: ${why}`, { path })
    this.code = code
    this.operation = operation
    this.number = number
  }
}

/** There is no node at the path, or no parent for what was to be created. */
export class NoNodeError extends RefusedError {}
/** There is a node at the path already. */
export class NodeExistsError extends RefusedError {}
/** The node has another version than the one that was named. */
export class BadVersionError extends RefusedError {}
/** A node with children can't be deleted. */
export class NotEmptyError extends RefusedError {}
/** An ephemeral node has no children, and none can be created under it. */
export class NoChildrenForEphemeralsError extends RefusedError {}
/** The node's ACL does not allow it to whom this client is. */
export class NoAuthError extends RefusedError {}
/** The server does not accept the ACL. */
export class InvalidAclError extends RefusedError {}
/** The server does not accept the client's credentials. */
export class AuthFailedError extends RefusedError {}

/** Numbers of replies that mean something beyond the error that they stand for. */
export const NUMBERS = { noNode: -101, badVersion: -103, sessionExpired: -112, authFailed: -115 } as const

type RefusalClass = typeof RefusedError

const REFUSALS: ReadonlyMap<number, readonly [RefusalClass, RefusalCode, string]> = new Map([
  [NUMBERS.noNode, [NoNodeError, 'NO_NODE', 'there is no such node']],
  [-110, [NodeExistsError, 'NODE_EXISTS', 'the node exists already']],
  [NUMBERS.badVersion, [BadVersionError, 'BAD_VERSION', 'the node has another version']],
  [-111, [NotEmptyError, 'NOT_EMPTY', 'the node has children']],
  [
    -108,
    [NoChildrenForEphemeralsError, 'NO_CHILDREN_FOR_EPHEMERALS', 'an ephemeral node can have no children'],
  ],
  [-102, [NoAuthError, 'NO_AUTH', 'its ACL does not allow it']],
  [-114, [InvalidAclError, 'INVALID_ACL', 'the server does not accept the ACL']],
  [NUMBERS.authFailed, [AuthFailedError, 'AUTH_FAILED', 'the server does not accept who this is']],
  [-8, [RefusedError, 'BAD_ARGUMENTS', 'the server does not accept the arguments']],
  [-6, [RefusedError, 'UNIMPLEMENTED', 'the server can not do that (TTL nodes want extendedTypesEnabled)']],
  [-121, [RefusedError, 'NO_WATCHER', 'nothing is watched there']],
  [-125, [RefusedError, 'QUOTA_EXCEEDED', 'the quota is reached']],
  [-119, [RefusedError, 'READ_ONLY', 'the server only reads for now']],
])

/** The error that a number in a reply stands for. */
export function refusal(operation: string, path: string, number: number): RefusedError {
  const [Class, code, why] = REFUSALS.get(number) ?? [
    RefusedError,
    'OTHER' as const,
    `refused by number ${number}`,
  ]
  return new Class(operation, path, number, code, why)
}

/** The server does not speak ZooKeeper's protocol, or breaks it. */
export class ProtocolError extends ZooKeeperError {
  readonly code = 'PROTOCOL'
}

/** The connection was lost, or the deadline passed, after an operation was sent: it may have been applied. */
export class ConnectionLossError extends ZooKeeperError {
  readonly code = 'CONNECTION_LOSS'
  /** The operation, like `create`. */
  readonly operation: string
  declare readonly path: string

  constructor(operation: string, path: string, ensemble: string, why: string, cause?: unknown) {
    super(`${operation} ${path} may have been applied: ${why}`, { path, ensemble, cause })
    this.operation = operation
  }
}

/** An operation was not sent before its deadline, or changes nothing: it was certainly not applied. */
export class NotSentError extends ZooKeeperError {
  readonly code = 'NOT_SENT'
  readonly operation: string
  declare readonly path: string

  constructor(operation: string, path: string, ensemble: string, why: string, cause?: unknown) {
    super(`${operation} ${path} was not carried out: ${why}`, { path, ensemble, cause })
    this.operation = operation
  }
}

/** No server welcomed the client in time, or one rejected its credentials; `cause` is the last reason. */
export class UnreachableError extends ZooKeeperError {
  readonly code = 'UNREACHABLE'
}

/** The session is over: its ephemeral nodes are deleted, its watches have ended, and it never comes back. */
export class SessionExpiredError extends ZooKeeperError {
  readonly code = 'SESSION_EXPIRED'
}

/** The client was closed, before the call or while it waited. */
export class ClosedError extends ZooKeeperError {
  readonly code = 'CLOSED'
}

/** The caller's `signal` aborted; `cause` is its reason. */
export class AbortedError extends ZooKeeperError {
  readonly code = 'ABORTED'
}

/** Another client deleted a node that a recipe had created and still needed. */
export class NodeDeletedError extends ZooKeeperError {
  readonly code = 'NODE_DELETED'
}

/** A node of a recipe has data that no such recipe wrote. */
export class UnexpectedDataError extends ZooKeeperError {
  readonly code = 'UNEXPECTED_DATA'
}

/** An argument was refused before anything was sent; the message names it, what it got and what it takes. */
export class InvalidArgumentError extends ZooKeeperError {
  readonly code = 'INVALID_ARGUMENT'
}

/** Renders a refused value for a message: short, quoted if it is text. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}
