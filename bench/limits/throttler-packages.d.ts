/**
 * The parts that are used here. The packages are installed only where the bench was run, but types are checked
 * everywhere.
 */
interface ThrottlerStorage {
  increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<unknown>
}

declare module '@nestjs/throttler' {
  export class ThrottlerStorageService implements ThrottlerStorage {
    increment: ThrottlerStorage['increment']
    onApplicationShutdown(): void
  }
}

declare module '@nest-lab/throttler-storage-redis' {
  export class ThrottlerStorageRedisService implements ThrottlerStorage {
    constructor(url: string)
    increment: ThrottlerStorage['increment']
    onModuleDestroy(): void
  }
}
