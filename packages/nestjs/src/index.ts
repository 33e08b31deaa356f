export { SignalboxModule, type SignalboxModuleOptions } from './module.js'
export { BOX, InjectBox } from './inject-box.js'
export { Locked, type LockKeys } from './locked.js'
export { OncePerFleet, type OncePerFleetOptions } from './once-per-fleet.js'
export { CurrentGrant, CurrentSlot } from './current.js'
export { SignalboxExceptionFilter } from './exception-filter.js'
export { SignalboxHealthIndicator, type BoxHealth } from './health-indicator.js'
export {
  SignalboxThrottlerStorage,
  type ThrottlerRecord,
  type ThrottlerStorageOptions,
} from './throttler-storage.js'
