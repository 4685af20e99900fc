//! The instructions that a kernel becomes.

/// Number of a slot, which holds one scalar. Before a program is linked, the two highest bits say where its number counts from.
pub(crate) type SlotIdx = u32;

/// No slot.
pub(crate) const NO_SLOT: SlotIdx = u32::MAX;
/// Mark of slots that count from the first constant.
pub(crate) const CONSTANT: SlotIdx = 1 << 31;
/// Mark of slots that count from the first private variable. Slots without a mark count from the frame of their function.
pub(crate) const PRIVATE: SlotIdx = 1 << 30;

/// Functions of one operand. Scalars of 32 bits have zeros above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryFunction {
    Negate32,
    Negate64,
    NotBool,
    Not32,
    Not64,
    /// The low 32 bits.
    Low32,
    /// An `i32` as 64 bits with its sign.
    Extend,
    /// Whether it is not 0.
    IsSet,
    LeadingZeros32,
    LeadingZeros64,
    TrailingZeros32,
    TrailingZeros64,
    Ones,
    Reverse32,
    Abs32,
    Abs64,
}

/// Functions of two operands. Where signs and width do not matter, one serves all types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryFunction {
    Add32,
    Add64,
    Subtract32,
    Subtract64,
    Multiply32,
    Multiply64,
    /// Quotient of unsigned integers. As WGSL has it, a division by 0 gives the dividend, and a rest by 0 gives 0.
    Divide,
    Rest,
    DivideI32,
    DivideI64,
    RestI32,
    RestI64,
    And,
    Or,
    Xor,
    /// Shifts count modulo the width.
    Left32,
    Left64,
    Right32,
    Right64,
    RightI32,
    RightI64,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    LessI32,
    LessI64,
    LessEqualI32,
    LessEqualI64,
    Min,
    Max,
    MinI32,
    MaxI32,
    MinI64,
    MaxI64,
}

/// Changes of a word of 32 bits that nothing interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicChange {
    Add,
    Subtract,
    And,
    Xor,
    Or,
    Min,
    Max,
    MinI32,
    MaxI32,
    Exchange,
}

/// Where a place in memory begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// A storage buffer, by its place among the program's bindings. Offsets count words of 32 bits.
    Buffer(u32),
    /// The variables of the workgroup. Offsets count scalars.
    Group,
    /// Slots of the invocation.
    Own,
}

/// A place in memory: an offset that is known, and one in a slot, unless that is [`NO_SLOT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPlace {
    pub root: Root,
    pub offset: u32,
    pub dynamic: SlotIdx,
}

/// Number of elements behind an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Known(u32),
    /// As many as fit in a buffer behind `offset`.
    Rest {
        buffer: u32,
        offset: u32,
    },
}

/// How a scalar of a buffer is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Whether it has 64 bits.
    pub wide: bool,
    /// Whether it is the first scalar of what the text accesses at once.
    pub begins: bool,
    /// Whether it begins a piece of at most 16 bytes.
    pub begins_piece: bool,
    pub atomic: bool,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    Copy {
        to: SlotIdx,
        from: SlotIdx,
        n: u32,
    },
    /// Copies from or to a slot in the frame of another function.
    CopyToCallee {
        function: u32,
        to: SlotIdx,
        from: SlotIdx,
        n: u32,
    },
    CopyFromCallee {
        function: u32,
        to: SlotIdx,
        from: SlotIdx,
        n: u32,
    },
    Unary {
        f: UnaryFunction,
        to: SlotIdx,
        a: SlotIdx,
    },
    Binary {
        f: BinaryFunction,
        to: SlotIdx,
        a: SlotIdx,
        b: SlotIdx,
    },
    Select {
        to: SlotIdx,
        condition: SlotIdx,
        yes: SlotIdx,
        no: SlotIdx,
    },
    /// `to = base + min(index, length - 1) * stride`, where `base` may be [`NO_SLOT`].
    Index {
        to: SlotIdx,
        base: SlotIdx,
        index: SlotIdx,
        stride: u32,
        length: Length,
    },
    /// Number of elements of `stride` words in a buffer behind `offset`.
    ArrayLength {
        to: SlotIdx,
        buffer: u32,
        offset: u32,
        stride: u32,
    },
    LoadBuffer {
        to: SlotIdx,
        place: MemoryPlace,
        access: Access,
    },
    StoreBuffer {
        from: SlotIdx,
        place: MemoryPlace,
        access: Access,
    },
    /// Loads and stores of `n` scalars in the variables of the workgroup or of the invocation.
    Load {
        to: SlotIdx,
        place: MemoryPlace,
        n: u32,
    },
    Store {
        from: SlotIdx,
        place: MemoryPlace,
        n: u32,
    },
    Atomic {
        f: AtomicChange,
        to: SlotIdx,
        place: MemoryPlace,
        value: SlotIdx,
    },
    Jump {
        to: u32,
    },
    JumpIf {
        condition: SlotIdx,
        to: u32,
    },
    JumpUnless {
        condition: SlotIdx,
        to: u32,
    },
    /// Jumps by the table of this number.
    Choose {
        selector: SlotIdx,
        table: u32,
    },
    Call {
        function: u32,
    },
    Return,
    Barrier,
}

/// Where a value of a selector leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JumpTable {
    pub cases: Vec<(u32, u32)>,
    pub default: u32,
}

impl UnaryFunction {
    #[inline]
    pub(crate) fn apply(self, a: u64) -> u64 {
        let low = a as u32;
        match self {
            UnaryFunction::Negate32 => u64::from(low.wrapping_neg()),
            UnaryFunction::Negate64 => a.wrapping_neg(),
            UnaryFunction::NotBool => u64::from(a == 0),
            UnaryFunction::Not32 => u64::from(!low),
            UnaryFunction::Not64 => !a,
            UnaryFunction::Low32 => u64::from(low),
            UnaryFunction::Extend => i64::from(low as i32) as u64,
            UnaryFunction::IsSet => u64::from(a != 0),
            UnaryFunction::LeadingZeros32 => u64::from(low.leading_zeros()),
            UnaryFunction::LeadingZeros64 => u64::from(a.leading_zeros()),
            UnaryFunction::TrailingZeros32 => u64::from(low.trailing_zeros()),
            UnaryFunction::TrailingZeros64 => u64::from(a.trailing_zeros()),
            UnaryFunction::Ones => u64::from(a.count_ones()),
            UnaryFunction::Reverse32 => u64::from(low.reverse_bits()),
            UnaryFunction::Abs32 => u64::from((low as i32).wrapping_abs() as u32),
            UnaryFunction::Abs64 => (a as i64).wrapping_abs() as u64,
        }
    }
}

impl BinaryFunction {
    #[inline]
    pub(crate) fn apply(self, a: u64, b: u64) -> u64 {
        let (low_a, low_b) = (a as u32, b as u32);
        let (signed_a, signed_b) = (low_a as i32, low_b as i32);
        let from_i32 = |x: i32| u64::from(x as u32);
        match self {
            BinaryFunction::Add32 => u64::from(low_a.wrapping_add(low_b)),
            BinaryFunction::Add64 => a.wrapping_add(b),
            BinaryFunction::Subtract32 => u64::from(low_a.wrapping_sub(low_b)),
            BinaryFunction::Subtract64 => a.wrapping_sub(b),
            BinaryFunction::Multiply32 => u64::from(low_a.wrapping_mul(low_b)),
            BinaryFunction::Multiply64 => a.wrapping_mul(b),
            BinaryFunction::Divide => a.checked_div(b).unwrap_or(a),
            BinaryFunction::Rest => a.checked_rem(b).unwrap_or(0),
            BinaryFunction::DivideI32 => from_i32(signed_a.checked_div(signed_b).unwrap_or(signed_a)),
            BinaryFunction::DivideI64 => (a as i64).checked_div(b as i64).unwrap_or(a as i64) as u64,
            BinaryFunction::RestI32 => from_i32(signed_a.checked_rem(signed_b).unwrap_or(0)),
            BinaryFunction::RestI64 => (a as i64).checked_rem(b as i64).unwrap_or(0) as u64,
            BinaryFunction::And => a & b,
            BinaryFunction::Or => a | b,
            BinaryFunction::Xor => a ^ b,
            BinaryFunction::Left32 => u64::from(low_a.wrapping_shl(low_b)),
            BinaryFunction::Left64 => a.wrapping_shl(low_b),
            BinaryFunction::Right32 => u64::from(low_a.wrapping_shr(low_b)),
            BinaryFunction::Right64 => a.wrapping_shr(low_b),
            BinaryFunction::RightI32 => from_i32(signed_a.wrapping_shr(low_b)),
            BinaryFunction::RightI64 => (a as i64).wrapping_shr(low_b) as u64,
            BinaryFunction::Equal => u64::from(a == b),
            BinaryFunction::NotEqual => u64::from(a != b),
            BinaryFunction::Less => u64::from(a < b),
            BinaryFunction::LessEqual => u64::from(a <= b),
            BinaryFunction::LessI32 => u64::from(signed_a < signed_b),
            BinaryFunction::LessI64 => u64::from((a as i64) < b as i64),
            BinaryFunction::LessEqualI32 => u64::from(signed_a <= signed_b),
            BinaryFunction::LessEqualI64 => u64::from(a as i64 <= b as i64),
            BinaryFunction::Min => a.min(b),
            BinaryFunction::Max => a.max(b),
            BinaryFunction::MinI32 => from_i32(signed_a.min(signed_b)),
            BinaryFunction::MaxI32 => from_i32(signed_a.max(signed_b)),
            BinaryFunction::MinI64 => (a as i64).min(b as i64) as u64,
            BinaryFunction::MaxI64 => (a as i64).max(b as i64) as u64,
        }
    }
}

impl AtomicChange {
    /// The new value of a word.
    #[inline]
    pub(crate) fn apply(self, old: u32, value: u32) -> u32 {
        let (signed_old, signed) = (old as i32, value as i32);
        match self {
            AtomicChange::Add => old.wrapping_add(value),
            AtomicChange::Subtract => old.wrapping_sub(value),
            AtomicChange::And => old & value,
            AtomicChange::Xor => old ^ value,
            AtomicChange::Or => old | value,
            AtomicChange::Min => old.min(value),
            AtomicChange::Max => old.max(value),
            AtomicChange::MinI32 => signed_old.min(signed) as u32,
            AtomicChange::MaxI32 => signed_old.max(signed) as u32,
            AtomicChange::Exchange => value,
        }
    }
}
