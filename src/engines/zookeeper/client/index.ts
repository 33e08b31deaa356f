/** A client of ZooKeeper without dependencies: `import { ZooKeeper } from 'signalbox/zookeeper'`. */
export { CREATOR_ACL, digestId, OPEN_ACL, PERMISSIONS, type Acl } from './acl.js'
export type { OperationOptions } from './call.js'
export type { ChildrenAndStat, Created, CreatedTogether, CreateOptions, DataAndStat } from './calls.js'
export { createSettled } from './create-settled.js'
export type { SaslUser } from './digest-md5.js'
export {
  AuthFailedError,
  BadVersionError,
  ConnectionLossError,
  InvalidAclError,
  NoAuthError,
  NoChildrenForEphemeralsError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  NotSentError,
  ProtocolError,
  RefusedError,
  SessionExpiredError,
  type RefusalCode,
} from './errors.js'
export type { MultiOutcome } from './multi.js'
export { Barrier } from './recipes/barrier.js'
export { DoubleBarrier, type Round } from './recipes/double-barrier.js'
export { Group, type GroupChange, type GroupView, type Member, type Membership } from './recipes/group.js'
export { NodeQueue, type TakenMessage } from './recipes/node-queue.js'
export type { RecipeOptions, WaitOptions } from './recipes/waiting.js'
export { WatchedValue } from './recipes/watched-value.js'
export type { SessionState } from './session.js'
export { deleteSettled, setDataSettled, settled, type Seen } from './settled.js'
export type { Stat } from './stat.js'
export type { Transaction, TransactionAnswer } from './transaction.js'
export { oneEvent, type WatchEvent, type WatchListener } from './watch-event.js'
export type { WatchStream } from './watch-stream.js'
export { ZooKeeper, type ConnectOptions, type ReadOptions, type WatchOptions } from './zookeeper.js'
