import { IndeterminateError, LostError, UnavailableError } from '../../../errors.js'

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
export class RefusedError extends Error {
  readonly code: RefusalCode
  /** What was refused, like `create`. */
  readonly operation: string
  readonly path: string
  /** The number by which the server says why. */
  readonly number: number

  constructor(operation: string, path: string, number: number, code: RefusalCode, why: string) {
    super(`${operation} ${path}: ${why}`)
    this.name = new.target.name
    this.code = code
    this.operation = operation
    this.path = path
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

/** The other side speaks something else than ZooKeeper's protocol, or speaks it wrong. */
export class ProtocolError extends Error {
  constructor(message: string) {
    super(message)
    this.name = new.target.name
  }
}

/** The connection was lost, or the deadline passed, after an operation was sent: it may have been applied. */
export class ConnectionLossError extends IndeterminateError {
  /** What was under way, like `create`. */
  readonly operation: string
  readonly path: string

  constructor(operation: string, path: string, engine: string, why: string, cause?: unknown) {
    super(`${operation} ${path} may have been applied: ${why}`, { key: path, engine, cause })
    this.operation = operation
    this.path = path
  }
}

/** An operation was not sent before its deadline, or changes nothing: it was certainly not applied. */
export class NotSentError extends UnavailableError {
  readonly operation: string
  readonly path: string

  constructor(operation: string, path: string, engine: string, why: string, cause?: unknown) {
    super(`${operation} ${path} was not carried out: ${why}`, { key: path, engine, cause })
    this.operation = operation
    this.path = path
  }
}

/** The session is over: its ephemeral nodes go, its watches have ended, and it never comes back. */
export class SessionExpiredError extends LostError {}
