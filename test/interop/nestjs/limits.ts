import { Controller, Get, Module, UseGuards } from '@nestjs/common'
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis'
import { ThrottlerGuard, ThrottlerModule, type ThrottlerStorage } from '@nestjs/throttler'
import { SignalboxThrottlerStorage } from 'signalbox-nestjs'
import { setting } from './setting.js'

const { storage = 'signalbox', source, ttl = 60_000, blockDuration = ttl } = setting

const others: Readonly<Record<string, () => ThrottlerStorage>> = {
  'nest-lab': () => new ThrottlerStorageRedisService(source),
}

@Controller('limited')
@UseGuards(ThrottlerGuard)
class LimitedController {
  @Get()
  get(): string {
    return 'passed'
  }
}

@Module({
  imports: [
    ThrottlerModule.forRootAsync({
      inject: [SignalboxThrottlerStorage],
      useFactory: (own: SignalboxThrottlerStorage) => {
        const used = storage === 'signalbox' ? own : others[storage]?.()
        return { throttlers: [{ limit: 5, ttl, blockDuration }], ...(used && { storage: used }) }
      },
    }),
  ],
  controllers: [LimitedController],
})
export class LimitsModule {}
