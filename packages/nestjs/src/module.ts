import {
  ConfigurableModuleBuilder,
  Inject,
  Module,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common'
import { ModulesContainer } from '@nestjs/core'
import { open, type Box, type CloseOptions, type OpenOptions } from 'signalbox'
import { SignalboxHealthIndicator } from './health-indicator.js'
import { BOX } from './inject-box.js'
import { atShutdown, isBox, openedBoxes } from './lifecycle.js'
import { SignalboxThrottlerStorage } from './throttler-storage.js'

/** Options of {@link SignalboxModule}: those of `open` of Signalbox, and those for closing the box. */
export interface SignalboxModuleOptions extends OpenOptions, CloseOptions {
  /** The engine: a URL such as `'redis://localhost:6379'`, or an existing client, as the first argument of `open`. */
  source: Parameters<typeof open>[0]
}

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<SignalboxModuleOptions>()
    .setClassMethodName('forRoot')
    .setExtras({}, definition => ({ ...definition, global: true }))
    .build()

/**
 * Opens one box for the application, which `@InjectBox()` injects into providers of every module, and closes it with
 * the application. `forRoot(options)` takes {@link SignalboxModuleOptions}; `forRootAsync` gets them from a factory.
 * Other boxes that a `useFactory` of the application opens are closed, too.
 *
 * When the application shuts down, callers that wait for a lock are rejected with a ClosedError first, before any
 * module or the HTTP server waits for its requests. Holders keep their grants until these requests are answered, and
 * for `drain` after that.
 */
@Module({
  providers: [
    {
      provide: BOX,
      useFactory: (given: SignalboxModuleOptions | undefined) => {
        // A factory that returns nothing gets the error of a missing source.
        const { source, drain: _, ...options } = given ?? ({} as SignalboxModuleOptions)
        return open(source, options)
      },
      inject: [MODULE_OPTIONS_TOKEN],
    },
    {
      provide: SignalboxThrottlerStorage,
      useFactory: (box: Box) => new SignalboxThrottlerStorage(box),
      inject: [BOX],
    },
    SignalboxHealthIndicator,
  ],
  exports: [BOX, SignalboxThrottlerStorage, SignalboxHealthIndicator],
})
export class SignalboxModule
  extends ConfigurableModuleClass
  implements OnApplicationBootstrap, OnApplicationShutdown
{
  readonly #box: Box
  readonly #options: SignalboxModuleOptions
  readonly #modules: ModulesContainer

  constructor(
    @Inject(BOX) box: Box,
    @Inject(MODULE_OPTIONS_TOKEN) options: SignalboxModuleOptions,
    @Inject(ModulesContainer) modules: ModulesContainer,
  ) {
    super()
    this.#box = box
    this.#options = options
    this.#modules = modules
  }

  onApplicationBootstrap(): void {
    atShutdown(this.#modules, () => {
      // Not awaited: Nest closes the HTTP server next, and holders release when their requests are answered. An error
      // is thrown by the close below.
      for (const box of this.#boxes) box.close({ drain: true }).catch(() => undefined)
    })
  }

  async onApplicationShutdown(): Promise<void> {
    const { drain } = this.#options
    await Promise.all([...this.#boxes].map(box => box.close({ drain })))
  }

  /** Returns all boxes of the application. A test may have replaced the box of this module, also by a mock. */
  get #boxes(): ReadonlySet<Box> {
    return new Set([this.#box, ...openedBoxes(this.#modules)].filter(isBox))
  }
}
