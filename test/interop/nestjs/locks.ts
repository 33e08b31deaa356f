import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  Controller,
  Get,
  Inject,
  Injectable,
  Module,
  Param,
  Post,
  Query,
  Req,
  Scope,
  SetMetadata,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
  type MiddlewareConsumer,
  type NestMiddleware,
  type NestModule,
  type OnApplicationBootstrap,
} from '@nestjs/common'
import { REQUEST, Reflector } from '@nestjs/core'
import type { Box, Grant } from 'signalbox'
import { CurrentGrant, InjectBox, Locked } from 'signalbox-nestjs'
import type { Order } from '../nest.js'
import { letGo, report } from './setting.js'

/** Increments a number in a file, in two steps, which is safe only under a lock. */
async function count(file: string): Promise<number> {
  const value = Number(await readFile(file, 'utf8')) + 1
  await sleep(5)
  await writeFile(file, String(value))
  return value
}

@Controller('count')
class CountController {
  @Post('locked')
  @Locked((file: string) => `count:${file}`)
  async locked(@Query('file') file: string, @CurrentGrant() grant?: Grant): Promise<[number, string]> {
    return [await count(file), String(grant!.token)]
  }

  @Post('unlocked')
  async unlocked(@Query('file') file: string): Promise<number> {
    return count(file)
  }
}

@Controller()
class WaitController {
  @Get('busy/:key')
  @Locked((key: string) => key, { wait: 0 })
  async busy(@Param('key') key: string): Promise<string> {
    return key
  }

  @Get('late/:key')
  @Locked((key: string) => key, { wait: 20 })
  async late(@Param('key') key: string): Promise<string> {
    return key
  }

  @Get('hold/:key')
  @Locked((key: string) => key)
  async hold(@Param('key') key: string): Promise<string> {
    await letGo(key)
    return 'held'
  }

  @Get('lost/:key')
  @Locked((key: string) => key, { lease: 20, renew: false })
  async lost(@Param('key') key: string): Promise<string> {
    await sleep(50)
    return key
  }

  @Get('invalid')
  @Locked('')
  async invalid(): Promise<void> {}
}

/** Fails before Nest has found a handler. */
@Injectable()
class BusyMiddleware implements NestMiddleware {
  @Locked('door', { wait: 0 })
  async use(_request: unknown, _response: unknown, next: () => void): Promise<void> {
    next()
  }
}

@Injectable({ scope: Scope.REQUEST })
class ScopedService {
  readonly tenant: string

  constructor(
    @Inject(REQUEST) { query }: { readonly query: { readonly tenant: string } },
    @InjectBox() readonly box: Box,
  ) {
    this.tenant = query.tenant
  }

  @Locked(function (this: ScopedService, id: string) {
    return [`${this.tenant}:${id}`, 'all']
  })
  async keys(id: string, @CurrentGrant() grant?: Grant): Promise<readonly string[]> {
    return [...grant!.keys, this.box.session]
  }
}

abstract class Work {
  @Locked((id: string) => `work:${id}`)
  async work(id: string, @CurrentGrant() grant?: Grant): Promise<readonly string[]> {
    return [this.constructor.name, ...grant!.keys]
  }
}

@Injectable()
class InheritedWork extends Work {}

@Injectable()
class OverriddenWork extends Work {
  override async work(id: string): Promise<readonly string[]> {
    return ['overridden', ...(await super.work(id))]
  }

  @Locked('own', { reentrant: true })
  async own(): Promise<readonly string[]> {
    return ['own', ...(await this.work('5'))]
  }
}

interface Seen {
  seen?: readonly unknown[]
}

/** A guard that records the metadata of a handler. */
@Injectable()
class SeeingGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const handler = context.getHandler()
    context.switchToHttp().getRequest<Seen>().seen = [handler.name, this.reflector.get('roles', handler)]
    return true
  }
}

@Controller('decorated')
@UseGuards(SeeingGuard)
class DecoratedController {
  @Get('above')
  @SetMetadata('roles', ['admin'])
  @Locked('above')
  async above(@CurrentGrant() grant: Grant, @Req() { seen }: Seen): Promise<unknown> {
    return [...grant.keys, seen]
  }

  @Locked('below')
  @Get('below')
  @SetMetadata('roles', ['admin'])
  async below(@CurrentGrant() grant: Grant, @Req() { seen }: Seen): Promise<unknown> {
    return [...grant.keys, seen]
  }
}

@Controller()
class ServiceController {
  constructor(
    private readonly scoped: ScopedService,
    private readonly inherited: InheritedWork,
    private readonly overridden: OverriddenWork,
  ) {}

  @Get('scoped')
  async keys(): Promise<readonly string[]> {
    return this.scoped.keys('7')
  }

  @Get('inherited')
  async work(): Promise<unknown> {
    return [await this.inherited.work('3'), await this.overridden.work('4'), await this.overridden.own()]
  }
}

/** Holds a lock outside of requests. */
@Injectable()
class Background implements OnApplicationBootstrap {
  onApplicationBootstrap(): void {
    process.on('message', (order: Order) => {
      // `work` rejects if it loses the lock before it ends.
      if ('background' in order) void this.work(order.background).catch(() => undefined)
    })
  }

  @Locked((key: string) => key)
  async work(key: string, @CurrentGrant() grant?: Grant): Promise<void> {
    report({ background: 'holds' })
    await Promise.race([letGo(key), new Promise(resolve => (grant!.signal.onabort = resolve))])
    report({ background: grant!.signal.aborted ? 'aborted' : 'done' })
  }
}

@Module({
  controllers: [CountController, WaitController, DecoratedController, ServiceController],
  providers: [ScopedService, InheritedWork, OverriddenWork, Background],
})
export class LocksModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(BusyMiddleware).forRoutes('middleware')
  }
}
