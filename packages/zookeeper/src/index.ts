/** A client of ZooKeeper without dependencies: `import { ZooKeeper } from 'signalbox-zookeeper'`. */
export { CREATOR_ACL, digestId, OPEN_ACL, parseAcl, PERMISSIONS, type Acl } from './acl.js'
export type { OperationOptions } from './call.js'
export type { ChildrenAndStat, Created, CreatedTogether, CreateOptions, DataAndStat } from './calls.js'
export { createSettled, ensureNode } from './create-settled.js'
export type { SaslUser } from './digest-md5.js'
export type { Duration } from './duration.js'
export {
  AbortedError,
  AuthFailedError,
  BadVersionError,
  ClosedError,
  ConnectionLossError,
  InvalidAclError,
  InvalidArgumentError,
  NoAuthError,
  NoChildrenForEphemeralsError,
  NodeDeletedError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  NotSentError,
  ProtocolError,
  RefusedError,
  SessionExpiredError,
  UnexpectedDataError,
  UnreachableError,
  ZooKeeperError,
  type ErrorCode,
  type ErrorContext,
  type RefusalCode,
} from './errors.js'
export { parseEnsemble, type Ensemble, type Host } from './hosts.js'
export type { MultiOutcome } from './multi.js'
export { checkPath } from './paths.js'
export { Barrier } from './recipes/barrier.js'
export { DoubleBarrier, type Round } from './recipes/double-barrier.js'
export { Group, type GroupChange, type GroupView, type Member, type Membership } from './recipes/group.js'
export { NodeQueue, type TakenMessage } from './recipes/node-queue.js'
export type { RecipeOptions, WaitOptions } from './recipes/waiting.js'
export { WatchedValue } from './recipes/watched-value.js'
export type { SessionState } from './session.js'
export {
  deleteOwn,
  deleteSettled,
  ifExists,
  retryUnsent,
  setDataSettled,
  settled,
  type Seen,
} from './settled.js'
export type { Stat } from './stat.js'
export type { Transaction, TransactionAnswer } from './transaction.js'
export { oneEvent, type WatchEvent, type WatchListener } from './watch-event.js'
export type { WatchStream } from './watch-stream.js'
export { ZooKeeper, type ConnectOptions, type ReadOptions, type WatchOptions } from './zookeeper.js'
