import { vi } from 'vitest'
import { runtimeTimers } from '../../src/base/runtime-timers.js'

/** Installs fake timers that the system clock uses, too. `restoreMocks` and `vi.useRealTimers` end it. */
export function useFakeRuntime(config: Parameters<typeof vi.useFakeTimers>[0]): void {
  vi.useFakeTimers(config)
  const { setTimeout, clearTimeout } = globalThis
  vi.spyOn(runtimeTimers, 'setTimeout').mockImplementation(setTimeout as typeof runtimeTimers.setTimeout)
  vi.spyOn(runtimeTimers, 'clearTimeout').mockImplementation(
    clearTimeout as typeof runtimeTimers.clearTimeout,
  )
}
