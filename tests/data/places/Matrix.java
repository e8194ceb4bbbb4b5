package org.example.numbers;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.BinaryOperator;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A matrix whose cells are of any type for which a {@link Field} says how to add and multiply.
 *
 * @param <T> the type of a cell
 */
public final class Matrix<T extends Comparable<T>> implements Iterable<List<T>> {

    /** How to calculate with cells. */
    public record Field<T>(T zero, T one, BinaryOperator<T> plus, BinaryOperator<T> times) {
        public static final Field<Double> REAL = new Field<>(0d, 1d, Double::sum, (a, b) -> a * b);
        public static final Field<Long> WHOLE = new Field<>(0L, 1L, Long::sum, (a, b) -> a * b);
    }

    public enum Axis { ROW, COLUMN }

    private static final Map<String, Axis> AXES = Map.of(
        "row", Axis.ROW,
        "r", Axis.ROW,
        "column", Axis.COLUMN,
        "c", Axis.COLUMN
    );

    private final Field<T> field;
    private final List<List<T>> rows;

    @SafeVarargs
    public Matrix(Field<T> field, List<T>... rows) {
        this(field, Arrays.asList(rows));
    }

    public Matrix(Field<T> field, List<List<T>> rows) {
        this.field = Objects.requireNonNull(field, "a matrix can't do without its field");
        if (rows.stream().mapToInt(List::size).distinct().count() > 1) {
            throw new IllegalArgumentException("rows differ in length: " + rows);
        }
        this.rows = Collections.unmodifiableList(new ArrayList<>(rows));
    }

    public static <T extends Comparable<T>> Matrix<T> identity(Field<T> field, int size) {
        IntFunction<List<T>> row = i -> IntStream.range(0, size)
            .mapToObj(j -> i == j ? field.one() : field.zero())
            .collect(Collectors.toList());
        return new Matrix<>(field, IntStream.range(0, size).mapToObj(row).toList());
    }

    public int height() {
        return rows.size();
    }

    public int width() {
        return rows.isEmpty() ? 0 : rows.get(0).size();
    }

    public T get(int row, int column) {
        return rows.get(row).get(column);
    }

    public List<T> line(Axis axis, int index) {
        return switch (axis) {
            case ROW -> rows.get(index);
            case COLUMN -> rows.stream().map(row -> row.get(index)).toList();
        };
    }

    public Matrix<T> times(Matrix<T> other) {
        if (width() != other.height()) {
            throw new IllegalArgumentException(
                String.format("%d columns don't fit %d rows", width(), other.height()));
        }
        List<List<T>> product = new ArrayList<>(height());
        for (int i = 0; i < height(); i++) {
            final List<T> left = rows.get(i);
            product.add(IntStream.range(0, other.width())
                .mapToObj(j -> dot(left, other.line(Axis.COLUMN, j)))
                .toList());
        }
        return new Matrix<>(field, product);
    }

    private T dot(List<T> a, List<T> b) {
        T sum = field.zero();
        for (int k = 0; k < a.size(); k++) {
            sum = field.plus().apply(sum, field.times().apply(a.get(k), b.get(k)));
        }
        return sum;
    }

    public <R extends Comparable<R>> Matrix<R> map(Field<R> to, Function<? super T, R> f) {
        return new Matrix<R>(to, rows.stream().map(r -> r.stream().<R>map(f).toList()).toList());
    }

    public Optional<T> largest() {
        return rows.stream().flatMap(List::stream).max(Comparable::compareTo);
    }

    public static Optional<Matrix<Double>> parse(String text, char comment) {
        List<List<Double>> rows = new ArrayList<>();
        for (String line : text.split("\\R")) {
            if (line.isBlank() || line.charAt(0) == comment) continue;
            try {
                String[] cells = line.trim().split("[\\s,;]+");
                rows.add(Arrays.stream(cells).map(Double::valueOf).toList());
            } catch (NumberFormatException | IndexOutOfBoundsException e) {
                System.err.println("skipped '" + line + "': " + e.getMessage());
                return Optional.empty();
            }
        }
        return Optional.of(new Matrix<>(Field.REAL, rows));
    }

    @Override
    public java.util.Iterator<List<T>> iterator() {
        return rows.iterator();
    }

    @Override
    @SuppressWarnings({"unchecked", "rawtypes"})
    public boolean equals(Object other) {
        return other instanceof Matrix matrix && rows.equals(((Matrix<T>) matrix).rows);
    }

    @Override
    public int hashCode() {
        return Objects.hash(rows, field.zero());
    }

    public static void main(String[] args) {
        Axis axis = AXES.getOrDefault(args.length > 0 ? args[0].toLowerCase() : "row", Axis.ROW);
        Matrix<Double> m = parse("# it's small\n1 2\n3 4", '#')
            .orElseGet(() -> identity(Field.REAL, 2));
        double[] weights = {0.25, 0.75};
        System.out.printf("%s %s %.2f%n", m.line(axis, 0), m.times(m).largest().get(), weights[1]);
        System.out.println(m.map(Field.WHOLE, x -> (long) (x * 100)).get(0, 1));
    }
}
