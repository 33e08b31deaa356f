/** The code of an error, for a `switch`: one for each reason. */
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

/** Details of an error, and its cause. */
export interface ErrorContext {
  /** The path of the node, relative to the chroot. */
  readonly path?: string | undefined
  /** The servers and the chroot, as passed to `connect`. */
  readonly ensemble?: string | undefined
  readonly cause?: unknown
}

/** The base class of all errors of the client. */
export abstract class ZooKeeperError extends Error {
  abstract readonly code: ErrorCode
  readonly path: string | undefined
  /** Undefined if a server refused an operation, and for errors of arguments and recipes. */
  readonly ensemble: string | undefined

  constructor(message: string, context: ErrorContext = {}) {
    super(message, 'cause' in context ? { cause: context.cause } : undefined)
    this.name = new.target.name
    this.path = context.path
    this.ensemble = context.ensemble
  }
}

/** The reason why a server refused an operation. */
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

/** A server refused an operation, which was certainly not applied. */
export class RefusedError extends ZooKeeperError {
  readonly code: RefusalCode
  /** The operation, such as `create`. */
  readonly operation: string
  declare readonly path: string
  /** The error code of the protocol. */
  readonly number: number

  constructor(operation: string, path: string, number: number, code: RefusalCode, why: string) {
    super(`${operation} ${path}: ${why}`, { path })
    this.code = code
    this.operation = operation
    this.number = number
  }
}

/** The node does not exist, or the parent of a node to create. */
export class NoNodeError extends RefusedError {}
/** A node with this path exists already. */
export class NodeExistsError extends RefusedError {}
/** The node has a different version than the given one. */
export class BadVersionError extends RefusedError {}
/** A node with children can't be deleted. */
export class NotEmptyError extends RefusedError {}
/** An ephemeral node can't have children. */
export class NoChildrenForEphemeralsError extends RefusedError {}
/** The node's ACL does not permit the operation to this client. */
export class NoAuthError extends RefusedError {}
/** The server rejects the ACL. */
export class InvalidAclError extends RefusedError {}
/** The server rejects the client's credentials. */
export class AuthFailedError extends RefusedError {}

/** Error codes of the protocol that the client handles itself. */
export const NUMBERS = { noNode: -101, badVersion: -103, sessionExpired: -112, authFailed: -115 } as const

type RefusalClass = typeof RefusedError

const REFUSALS: ReadonlyMap<number, readonly [RefusalClass, RefusalCode, string]> = new Map([
  [NUMBERS.noNode, [NoNodeError, 'NO_NODE', 'the node does not exist']],
  [-110, [NodeExistsError, 'NODE_EXISTS', 'the node exists already']],
  [NUMBERS.badVersion, [BadVersionError, 'BAD_VERSION', 'the node has another version']],
  [-111, [NotEmptyError, 'NOT_EMPTY', 'the node has children']],
  [
    -108,
    [NoChildrenForEphemeralsError, 'NO_CHILDREN_FOR_EPHEMERALS', "an ephemeral node can't have children"],
  ],
  [-102, [NoAuthError, 'NO_AUTH', "the node's ACL does not permit it"]],
  [-114, [InvalidAclError, 'INVALID_ACL', 'the server rejected the ACL']],
  [NUMBERS.authFailed, [AuthFailedError, 'AUTH_FAILED', "the server rejected the client's credentials"]],
  [-8, [RefusedError, 'BAD_ARGUMENTS', 'the server rejected the arguments']],
  [
    -6,
    [
      RefusedError,
      'UNIMPLEMENTED',
      'the server does not support it (TTL nodes require extendedTypesEnabled)',
    ],
  ],
  [-121, [RefusedError, 'NO_WATCHER', 'there is no watch at the path']],
  [-125, [RefusedError, 'QUOTA_EXCEEDED', 'the quota is exceeded']],
  [-119, [RefusedError, 'READ_ONLY', 'the server is read-only']],
])

/** Returns the error for an error code of the protocol. */
export function refusal(operation: string, path: string, number: number): RefusedError {
  const [Class, code, why] = REFUSALS.get(number) ?? [
    RefusedError,
    'OTHER' as const,
    `refused with error code ${number}`,
  ]
  return new Class(operation, path, number, code, why)
}

/** The server does not speak ZooKeeper's protocol, or violates it. */
export class ProtocolError extends ZooKeeperError {
  readonly code = 'PROTOCOL'
}

/** The connection was lost, or the operation timed out, after it was sent: it may have been applied. */
export class ConnectionLossError extends ZooKeeperError {
  readonly code = 'CONNECTION_LOSS'
  /** The operation, such as `create`. */
  readonly operation: string
  declare readonly path: string

  constructor(operation: string, path: string, ensemble: string, why: string, cause?: unknown) {
    super(`${operation} ${path} may have been applied: ${why}`, { path, ensemble, cause })
    this.operation = operation
  }
}

/** An operation was not sent in time, or changes nothing: it was certainly not applied. */
export class NotSentError extends ZooKeeperError {
  readonly code = 'NOT_SENT'
  readonly operation: string
  declare readonly path: string

  constructor(operation: string, path: string, ensemble: string, why: string, cause?: unknown) {
    super(`${operation} ${path} was not applied: ${why}`, { path, ensemble, cause })
    this.operation = operation
  }
}

/** No server welcomed the client in time, or one rejected its credentials. `cause` is the last failure. */
export class UnreachableError extends ZooKeeperError {
  readonly code = 'UNREACHABLE'
}

/** The session has ended: its ephemeral nodes are deleted, its watches are removed, and it can't be restored. */
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

/** A node of a recipe has data that the recipe did not write. */
export class UnexpectedDataError extends ZooKeeperError {
  readonly code = 'UNEXPECTED_DATA'
}

/** An argument is invalid, and nothing was sent. The message names it, its value, and the valid values. */
export class InvalidArgumentError extends ZooKeeperError {
  readonly code = 'INVALID_ARGUMENT'
}

/** Formats an invalid value for a message: short, and quoted if it is a string. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}
